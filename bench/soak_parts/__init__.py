"""Parts of bench/soak.py: a model server that keeps a log, members that ask, and the judge."""
