"""The ledger of privacy loss: an append-only, hash-chained list of events, and where it is stored."""
