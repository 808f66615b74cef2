"""Graduates, their programmes and their earnings, like PSEO's input."""
