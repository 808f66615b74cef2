"""Attacks on releases, audits of their privacy loss, and today's method as a comparator without guarantee (003)."""
