"""The metering proxy: it stands between an agent and its provider, counts and records."""
