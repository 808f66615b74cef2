"""Protected counts: two-sided geometric noise in every declared cell, or in the cells that a sparse table keeps."""
