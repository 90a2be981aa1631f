"""`python -m slotserve.stack`: what `bin/up` becomes once everything is installed."""

import argparse
import sys
from pathlib import Path

from slotserve.stack.errors import StartError
from slotserve.stack.folder import DataFolder
from slotserve.stack.parts import Options, Product, check_settings
from slotserve.stack.run import run_until_stopped


def main(product: type[Product] = Product) -> int:
    """Run all parts until a signal; answers the exit status."""
    options = read_options(sys.argv[1:])
    try:
        folder = DataFolder.open(options.data)
        check_settings(options.data)  # before anything of a killed one is ended
        return run_until_stopped(product(options, folder, folder.runtime()))
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def read_options(arguments: list[str]) -> Options:
    """The flags that bin/up hands on, already checked."""
    parser = argparse.ArgumentParser(prog="python -m slotserve.stack")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--web-port", type=int, required=True)
    parser.add_argument("--gateway-port", type=int, required=True)
    parser.add_argument("--no-demo", action="store_true")
    given = parser.parse_args(arguments)
    return Options(given.data, given.web_port, given.gateway_port, not given.no_demo)


if __name__ == "__main__":
    sys.exit(main())
