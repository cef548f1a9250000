"""What an experiment is worth before it is run."""
