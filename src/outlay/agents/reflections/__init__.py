"""Plans from a model: what it is asked, in which form it answers, and what becomes of the answer.

Pure: no model is called in here. `asking` says what is wanted below a node, `question` writes the
prompt, `shape` the JSON schema of the answer, `answers` reads it, `texts` rebuilds plans.
"""
