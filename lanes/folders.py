"""The folder of a lane's server: its own, readable by its user alone, and empty at each start."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings

from lanes.engines.base import Launch


def path(lane_pk: int) -> Path:
    """Where it is, below SLOTSERVE_DATA, which SLOTSERVE_RUN_AS must be able to pass through."""
    return Path(settings.SLOTSERVE_DATA) / "servers" / f"lane-{lane_pk}"


def prepare(folder: str, launch: Launch, run_as: Mapping[str, object] | None) -> None:
    """Empty the folder and put in what the launch says; only engines that need it have one.

    It is given to its user last: whoever else runs as that user must not put a link in the place of
    what is given.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if not launch.files and not launch.folders:
        return
    parent = Path(folder).parent
    parent.mkdir(parents=True, exist_ok=True)
    parent.chmod(0o711)  # to be passed through, not to be read
    made = (folder, *launch.folders)
    for each in made:
        Path(each).mkdir(mode=0o700)
    for file, text in launch.files.items():
        _write(file, text)
    for each in (*launch.files, *reversed(made)):
        _give(each, run_as)


def _write(file: str, text: str) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as stream:
        stream.write(text)


def _give(each: str, run_as: Mapping[str, object] | None) -> None:
    if run_as:
        os.chown(each, int(str(run_as["user"])), int(str(run_as["group"])), follow_symlinks=False)
