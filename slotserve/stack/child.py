"""`child.py PARENT PROGRAM …`: become PROGRAM, which then ends when PARENT is killed.

A program of its own because a process with threads must not run Python between fork and exec.
Runs isolated (`-I -S`): standard library only.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
CANNOT_START = 127


def main() -> None:
    """Ask the kernel (Linux only) for TERM at the parent's death, then exec."""
    parent, *argv = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(parent):  # it was killed before the wish was made
            sys.exit(1)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is wanted
    except OSError as error:
        print(f"cannot be started: {argv[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(CANNOT_START)


if __name__ == "__main__":
    main()
