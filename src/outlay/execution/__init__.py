"""How work is carried out: workspaces, sandbox, the attempt process and the local pool."""
