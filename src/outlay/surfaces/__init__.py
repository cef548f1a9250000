"""Response surfaces: what every combination of components would do."""
