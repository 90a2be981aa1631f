"""Whether this installation is in order: facts are read, then judged by one list of checks."""
