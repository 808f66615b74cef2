"""Published counts in a new classification: public files and arithmetic; no record, no key, no engine."""
