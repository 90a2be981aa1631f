"""Parts of bench/edge.py: a fast upstream, a bare control, a load generator, and what they tell."""
