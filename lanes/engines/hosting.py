"""What every engine's server gets of its host, and how a host's settings name programs."""

import os
import shlex
from collections.abc import Mapping

from lanes.engines.base import ServerSpec

_ALWAYS = (
    "PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TZ TMPDIR LD_LIBRARY_PATH DYLD_LIBRARY_PATH "
    "CUDA_HOME CUDA_PATH ROCM_PATH"
)

_OF_HOST = frozenset({"PYTHONPATH", "VK_DRIVER_FILES", "VK_ICD_FILENAMES"})


def passed_on(*names: str) -> dict[str, str]:
    """Of the worker's own environment: what any program needs, and these."""
    return {name: os.environ[name] for name in (*_ALWAYS.split(), *names) if name in os.environ}


def is_of_host(name: str) -> bool:
    """Whether a variable describes the host, so that it means nothing inside a container."""
    return name in _ALWAYS.split() or name in _OF_HOST


def gpus(spec: ServerSpec) -> Mapping[str, str]:
    """The lane's cards. Without any it computes on the CPU, and takes nobody else's."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(spec.gpu_uuids)}


def words_of(command: str) -> tuple[str, ...]:
    """A setting that names a program, with arguments where it needs some: "python -m server"."""
    return tuple(shlex.split(command))
