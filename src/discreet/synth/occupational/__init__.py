"""A sample of jobs and what they ask for, like the ORS."""
