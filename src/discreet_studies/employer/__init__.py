"""Reproduction of Haney et al. 2017, §10: the utility cost of formal privacy relative to noise infusion, on synthetic
data."""
