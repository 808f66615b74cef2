"""Attacks on releases, and statistical audits of their privacy loss (Haney et al. 2017)."""
