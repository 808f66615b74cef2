"""Li & Krenzke, 002: the bottom-up hypercube, its tables made again."""
