"""What keeps parallel research honest: confirmation, dead ends, ranking, stagnation, teams."""
