"""Coding agents and models as programs: how each is called, and what its output says."""
