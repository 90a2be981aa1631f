"""Which code a process runs: all processes of an installation should run the same."""

import hashlib
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("bookings", "gateway", "lanes", "notices", "slotserve", "wire")


@cache
def code_version() -> str:
    """The release and a short digest of the code, such as `0.1.0+3f2a91c0`; read once a process."""
    digest = hashlib.sha256()
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.py")):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return f"{_release()}+{digest.hexdigest()[:8]}"


def _release() -> str:
    try:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    except (OSError, tomllib.TOMLDecodeError, KeyError):
        return "unknown"
    return str(project["version"])
