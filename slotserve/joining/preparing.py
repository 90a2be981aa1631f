"""What this machine must have before a join token is spent, looked at and made beforehand."""

import os
import pwd
import secrets
import shutil
import socket
from argparse import Namespace
from pathlib import Path

import psutil

from slotserve.joining import environment_file
from slotserve.joining.asking import JoinError

MACHINE = "joining"  # what this machine says of itself until it has joined
ROOM = 2**16


def own_settings(options: Namespace) -> dict[str, str]:
    """What the flags say."""
    said = {
        "SLOTSERVE_DATA": str(options.data),
        "SLOTSERVE_RUN_AS": options.run_as or "",
        "SLOTSERVE_LLAMA_SERVER": options.llama_server or "",
    }
    return {name: value for name, value in said.items() if value}


def look(options: Namespace) -> None:
    """Whether what the flags name is there, and settings can be written. JoinError: it is not."""
    environment_file.text_of(own_settings(options))
    if options.run_as:
        _look_at_user(options.run_as)
    if options.llama_server and shutil.which(options.llama_server) is None:
        raise JoinError(f"{options.llama_server} is no program here: name another llama-server.")
    _try_to_write(options.data)


def own_addresses() -> list[str]:
    """The addresses of this machine's network cards."""
    cards = psutil.net_if_addrs().values()
    families = (socket.AF_INET, socket.AF_INET6)
    found = {each.address for card in cards for each in card if each.family in families}
    return sorted(address.partition("%")[0] for address in found)


def machine_of(folder: Path) -> str:
    """A secret of this machine, the same each time until it is forgotten: with it, it may ask again
    with the same token."""
    path = folder / MACHINE
    if not path.is_file():
        environment_file.write_text(path, secrets.token_urlsafe(32))
    return path.read_text()


def forget_machine(folder: Path) -> None:
    """It has joined."""
    (folder / MACHINE).unlink(missing_ok=True)


def _look_at_user(name: str) -> None:
    if os.geteuid() != 0:
        raise JoinError(
            f"only root can run model servers as {name}: leave --run-as out, or use sudo."
        )
    try:
        pwd.getpwnam(name)
    except KeyError as error:
        make = f"useradd --system --no-create-home {name}"
        raise JoinError(f"there is no user {name}: make it with `{make}`.") from error


def _try_to_write(folder: Path) -> None:
    """The folder is made here; OSError says what is in the way."""
    draft = folder / f"{MACHINE}.{os.getpid()}"
    try:
        environment_file.write_text(draft, "0" * ROOM)
    finally:
        draft.unlink(missing_ok=True)
