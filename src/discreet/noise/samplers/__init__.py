"""Exact and exactly rounded distributions, drawn from the key's stream; a proof beside each."""
