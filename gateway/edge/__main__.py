"""`python -m gateway.edge [--host 127.0.0.1] [--port 8001]`."""

import sys

from gateway.edge.server import main

if __name__ == "__main__":
    sys.exit(main())
