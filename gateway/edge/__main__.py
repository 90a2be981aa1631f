"""`python -m gateway.edge [--host 127.0.0.1] [--port 8001] [--workers 1]`."""

import sys

from gateway.edge.command import main

if __name__ == "__main__":
    sys.exit(main())
