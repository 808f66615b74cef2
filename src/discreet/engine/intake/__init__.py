"""The intake: every value of a record is normalised by itself, before any engine groups, filters or joins."""
