"""The intake: every value of a record is normalised on its own, before an engine groups, filters or joins."""
