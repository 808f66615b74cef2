"""A full cross-tabulation that is perturbed once, calibrated, and answers every query (002)."""
