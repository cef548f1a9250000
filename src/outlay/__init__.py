"""Outlay spends research effort where it pays."""
