"""A synthetic sample of jobs and their requirements, like the Occupational Requirements Survey (ORS)."""
