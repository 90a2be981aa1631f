"""bin/join: make this machine a host, then run its worker.

Safe to repeat: with the settings there, nothing is asked again, and it goes on with the rest.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from slotserve.joining import environment_file, preparing, unit
from slotserve.joining.asking import JoinError, Told, ask
from slotserve.worker_command import worker_argv

ROOT = Path(__file__).resolve().parent.parent.parent
FILE = "environment"


def main(arguments: list[str]) -> int:
    """Ask, write the settings down, look that they work here, start the worker."""
    options = read_options(arguments)
    file: Path = options.data / FILE
    try:
        if not file.exists():
            told = _exchange(file, options)
            print(f"This machine is the host {told.key} now; its settings are in {file}.")
        environment = {**_own(os.environ), **environment_file.read(file)}
        _check(environment)
        argv = worker_argv(f"host.{environment['SLOTSERVE_HOST_KEY']}")
        if _is_run_here(options, file, argv):
            _become(argv, environment)
        return 0
    except (JoinError, environment_file.EnvironmentFileError, OSError) as error:
        print(f"bin/join: {error}", file=sys.stderr)
        return 1


def read_options(arguments: list[str]) -> argparse.Namespace:
    """bin/join's flags."""
    parser = argparse.ArgumentParser(
        prog="bin/join", description="Make this machine a host of a SlotServe elsewhere."
    )
    add = parser.add_argument
    add("url", help="address of SlotServe's pages, such as https://gpu.example.org")
    add("token", help="a join token: made on the page of hosts, or by manage.py create_join_token")
    add("--data", type=_folder, default=_default_data(), help="its own folder (%(default)s)")
    add("--run-as", metavar="USER", help="Unix user of model servers, where this runs as root")
    add("--llama-server", metavar="PROGRAM", help="llama-server, unless it is on PATH")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--service", action="store_true", help="install and start a systemd service")
    how.add_argument("--no-start", action="store_true", help="start no worker")
    return parser.parse_args(arguments)


def _exchange(file: Path, options: argparse.Namespace) -> Told:
    """Spend the token when nothing of this machine is in the way any more; it may be given again
    until that has succeeded."""
    preparing.look(options)
    if options.service:
        unit.look(file, sys.executable)
    machine = preparing.machine_of(options.data)
    told = ask(options.url, options.token, machine, preparing.own_addresses())
    environment_file.write(file, {**told.environment, **preparing.own_settings(options)})
    preparing.forget_machine(options.data)
    return told


def _own(present: Mapping[str, str]) -> dict[str, str]:
    """What the settings of another installation, in this shell by chance, must not mix with."""
    foreign = ("SLOTSERVE_", "DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
    return {name: value for name, value in present.items() if not name.startswith(foreign)}


def _check(environment: Mapping[str, str]) -> None:
    """Whether database and Valkey answer from here; the cards are registered on the way."""
    argv = [sys.executable, "manage.py", "check_host"]
    if subprocess.run(argv, cwd=ROOT, env=dict(environment), check=False).returncode:
        raise JoinError("mend what is said above, then give the same command again.")


def _is_run_here(options: argparse.Namespace, file: Path, argv: tuple[str, ...]) -> bool:
    """Whether this process becomes the worker; else it has been started, or the command is said."""
    if options.no_start:
        print("No worker was started. With these settings its command is:")
        print(f"  python {' '.join(argv)}")
    elif options.service:
        print(unit.install(file, sys.executable, argv))
    else:
        print("Its worker runs until Ctrl-C; its model servers, until `manage.py stop_servers`.")
    return not (options.no_start or options.service)


def _become(argv: tuple[str, ...], environment: Mapping[str, str]) -> NoReturn:
    sys.stdout.flush()
    os.chdir(ROOT)
    os.execve(sys.executable, [sys.executable, *argv], dict(environment))  # noqa: S606 - no shell


def _folder(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _default_data() -> str:
    return "/var/lib/slotserve" if os.geteuid() == 0 else str(ROOT / "var-host")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
