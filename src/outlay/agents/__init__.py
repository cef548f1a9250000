"""Who proposes and who carries out: the built-in levers, and command agents."""
