"""`python -m discreet_studies`."""

from discreet_studies.cli import main

main()
