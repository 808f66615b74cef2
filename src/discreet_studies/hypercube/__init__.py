"""Reproduction of Li & Krenzke (2020): the bottom-up hypercube and its tables."""
