"""Runs kept as one file and carried out again without any model."""
