"""Published counts in a new classification (001 B): public files and arithmetic; no record, no key, no engine."""
