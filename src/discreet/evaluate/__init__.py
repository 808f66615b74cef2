"""Comparisons with the truth. They read confidential records: this side of the wall, and nothing is published."""
