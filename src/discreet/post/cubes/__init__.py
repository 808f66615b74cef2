"""Queries of a published cube and their standard errors, from published numbers alone."""
