"""Reproduction of Chetty & Friedman (2019): maximum observed sensitivity, on a synthetic atlas."""
