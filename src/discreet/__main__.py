"""`python -m discreet`."""

from discreet.cli import console

console()
