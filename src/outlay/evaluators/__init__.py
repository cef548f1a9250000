"""Parts for evaluators in Python: claims that a judge compares, and reports of a grader."""
