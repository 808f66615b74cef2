"""Counts of jobs that protect workers and establishments (003)."""
