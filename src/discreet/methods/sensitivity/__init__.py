"""Statistics of small cells, with noise scaled to the maximum observed sensitivity (004)."""
