"""The only randomness of a release: key, stream, exact discrete noise, exactly rounded noise; a proof beside each."""
