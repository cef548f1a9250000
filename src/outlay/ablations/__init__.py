"""An ablation as a run: a task's levers, or the parts of a champion, and what it came to."""
