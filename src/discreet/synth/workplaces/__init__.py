"""Synthetic establishments, their jobs and workers, like the input of LODES."""
