"""What bin/test runs. Standard library only."""

import os
import shutil
import subprocess
from pathlib import Path

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
PROGRAMS = ("nginx", "caddy", "systemd-analyze")
CHECKS = (
    ("ruff check", ("ruff", "check", ".")),
    ("ruff format", ("ruff", "format", "--check", ".")),
    ("mypy", ("mypy", ".")),
    ("lint-imports", ("lint-imports",)),
)
AT_ONCE = ("-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile")


def run_checks(python: Path) -> list[str]:
    """Run the linters; answers the names of those that failed."""
    return [
        name for name, command in CHECKS if run(name, (python.parent / command[0], *command[1:]))
    ]


def run_tests(python: Path, arguments: list[str]) -> list[str]:
    """Run pytest, saying loudly what cannot be tested here; answers the names of failures.

    Without arguments it is the whole test-suite, with its coverage, a few files of tests at once.
    """
    missing = list(missing_parts())
    for words in missing:
        print(f"\n*** NOT TESTED HERE: {words} ***\n", flush=True)
    failed = ["missing parts"] if missing and os.environ.get("CI") and not arguments else []
    arguments = arguments or [*AT_ONCE, "--cov", "--cov-report=term:skip-covered"]
    return failed + (["pytest"] if run("pytest", (python, "-m", "pytest", *arguments)) else [])


def missing_parts() -> list[str]:
    """What this machine lacks for the whole test-suite; in CI that is a failure."""
    missing = []
    if not os.environ.get("SLOTSERVE_TEST_POSTGRES"):
        missing.append(
            "PostgreSQL (set SLOTSERVE_TEST_POSTGRES=postgres://user:password@host/name)"
        )
    if not any(shutil.which(name) for name in CHROMIUMS):
        missing.append("pages in a browser (install chromium)")
    if not any(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")):
        missing.append("a stepped clock (install libfaketime)")
    everywhere = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
    absent = [name for name in PROGRAMS if not shutil.which(name, path=everywhere)]
    if absent:
        missing.append(f"examples of deployment (install {', '.join(absent)})")
    return missing


def run(name: str, argv: tuple[str | Path, ...]) -> bool:
    """Run one check with its output shown; whether it failed."""
    print(f"--- {name}", flush=True)
    return subprocess.run(argv, check=False).returncode != 0
