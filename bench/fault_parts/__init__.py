"""Parts of bench/faults.py: an installation that is broken on purpose, and who watches it."""
