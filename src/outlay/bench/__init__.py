"""Benchmarks of the methods themselves, with published numbers to check against."""
