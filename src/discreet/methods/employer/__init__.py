"""Counts of jobs that protect workers and establishments (Haney et al. 2017)."""
