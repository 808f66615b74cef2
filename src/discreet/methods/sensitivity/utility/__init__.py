"""Utility: the choice of epsilon, accuracy trade-offs, the envelope of observed sensitivities."""
