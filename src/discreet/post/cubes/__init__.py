"""Queries on a published cube, and their standard errors: public numbers alone."""
