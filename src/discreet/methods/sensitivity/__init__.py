"""Statistics of small cells, with noise scaled by the maximum observed sensitivity (Chetty & Friedman 2019)."""
