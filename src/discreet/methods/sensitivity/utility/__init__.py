"""What the noise costs: the choice of epsilon, trade-offs, the envelope of observed sensitivities."""
