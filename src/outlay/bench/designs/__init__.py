"""The reading-set benchmark: from a research state to an affordable, informative experiment."""
