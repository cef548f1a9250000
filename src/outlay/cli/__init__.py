"""The command line; each module holds one command and is imported when it is called."""
