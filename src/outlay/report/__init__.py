"""What a run looks like to a person: one HTML page, or Markdown."""
