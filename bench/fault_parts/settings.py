"""What a campaign's installation is set to, and this process, which reads its database.

Needed before Django is set up.
"""

from pathlib import Path

from bench.two_hosts import PASSWORD

DRAIN_SECONDS, STOP_SECONDS = 1.0, 2.0
SETTINGS = {
    "SLOTSERVE_DRAIN_SECONDS": f"{DRAIN_SECONDS:g}",
    "SLOTSERVE_STOP_TIMEOUT_SECONDS": f"{STOP_SECONDS:g}",
    "SLOTSERVE_BUFFER_SECONDS": "4",
    "SLOTSERVE_MIN_PRELOAD_SECONDS": "4",
    "SLOTSERVE_PORT_FIRST": "26000",
    "SLOTSERVE_PORT_LAST": "27999",
    "SLOTSERVE_LOG_LEVEL": "INFO",
    "SLOTSERVE_EDGE_ID": "faults",
    "DJANGO_SETTINGS_MODULE": "slotserve.settings",
}
HOST_KEY = "faults"


def environment(folder: Path, hosts: int) -> dict[str, str]:
    """For this process, which asks no broker of its own."""
    told = {**SETTINGS, "SLOTSERVE_LOG_LEVEL": "CRITICAL", "SLOTSERVE_HOST_KEY": HOST_KEY}
    told["REDIS_URL"] = f"unix://{folder}/nobody.sock?db=0"
    if hosts == 1:
        return {**told, "SLOTSERVE_DATA": str(folder / "data")}
    socket = str(folder / "pg").replace("/", "%2F")
    url = f"postgres://slotserve:{PASSWORD}@{socket}/postgres"
    return {**told, "SLOTSERVE_DATA": str(folder / "a"), "DATABASE_URL": url}
