"""A bad citizen: says why and ends."""

import sys

sys.stdout.write("no room for the model\n")
sys.exit(3)
