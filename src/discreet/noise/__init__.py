"""All randomness of a release: key, key stream, exact discrete noise, exactly rounded noise; with proofs."""
