"""Chetty & Friedman (2019), 004: maximum observed sensitivity, made again on an invented atlas."""
