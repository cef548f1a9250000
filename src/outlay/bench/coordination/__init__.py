"""The coordination testbed: which mechanism earns what, on which landscape, at equal budget.

Friedman 2026, "A Deterministic Testbed for Self-Organizing Agent-Team Coordination", with harder
landscapes and better rules beside the published ones. The mechanisms are those of
`outlay.coordination`, which `outlay search` uses.
"""
