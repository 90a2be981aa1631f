"""What bin/up, bin/join and bin/test share: an environment with what they need, then the program.

Only the standard library: this runs before anything is installed. Whatever a newcomer may meet
(no venv module, no network, a full disk) is said in one sentence.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from environment import ROOT, Environment, InstallError
from quality import run_checks, run_tests

OF_AN_INSTALLATION = ("SLOTSERVE_", "DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
OF_A_TEST_RUN = ("SLOTSERVE_TEST_", "SLOTSERVE_VENV")


def up(arguments: list[str]) -> None:
    """Become the supervisor of all parts; bad flags are refused before anything is installed."""
    options = read_options(arguments)
    python = prepared("requirements.txt")
    argv = [str(python), "-m", "slotserve.stack", "--data", str(options.data)]
    argv += ["--web-port", str(options.web_port), "--gateway-port", str(options.gateway_port)]
    argv += ["--no-demo"] if options.no_demo else []
    os.chdir(ROOT)
    # A Ctrl-C while the supervisor is still being imported waits until that can stop in order.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.execv(python, argv)  # noqa: S606 - no shell is wanted


def join(arguments: list[str]) -> None:
    """Become the program that makes this machine a host; it knows its flags."""
    python = prepared("requirements.txt")
    argv = [str(python), "-m", "slotserve.joining", *arguments]
    os.chdir(ROOT)
    os.execv(python, argv)  # noqa: S606 - no shell is wanted


def test(arguments: list[str]) -> None:
    """Run the checks (unless some tests are named) and the tests; exit with 1 if one failed."""
    python = prepared("requirements-dev.txt")
    os.chdir(ROOT)
    for name in list(os.environ):  # a test run reaches no running installation
        if name.startswith(OF_AN_INSTALLATION) and not name.startswith(OF_A_TEST_RUN):
            del os.environ[name]
    failed = [] if arguments else run_checks(python)
    failed += run_tests(python, arguments)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def read_options(arguments: list[str]) -> argparse.Namespace:
    """bin/up's flags."""
    parser = argparse.ArgumentParser(
        prog="bin/up", description="Bring up all of SlotServe on this machine; Ctrl-C stops it."
    )
    add = parser.add_argument
    data = os.environ.get("SLOTSERVE_DATA") or str(ROOT / "var")
    add("--data", type=_folder, default=data, help="where everything is kept (%(default)s)")
    add("--web-port", type=_port, default=8000, help="of the pages, on 127.0.0.1 (%(default)s)")
    add("--gateway-port", type=_port, default=8001, help="of the API, on 127.0.0.1 (%(default)s)")
    add("--no-demo", action="store_true", help="make no demo lane")
    return parser.parse_args(arguments)


def prepared(requirements: str) -> Path:
    """The environment's Python with the requirements installed; exits with a sentence if not."""
    try:
        return Environment().prepare(requirements)
    except InstallError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("\nInterrupted; the next start repairs what was left half done.", file=sys.stderr)
        sys.exit(130)


def _folder(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port: give a number from 1 to 65535")
    return int(text)
