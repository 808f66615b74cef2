"""Employment flows: a sparse matrix with noise, and a correction that preserves totals."""
