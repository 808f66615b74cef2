"""Samplers of exact and exactly rounded distributions, which read the key stream; with a proof for each."""
