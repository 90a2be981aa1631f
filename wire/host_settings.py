"""The settings that a machine is told when it joins as a host: these, and no others.

Nothing is among them by which a machine finds or loads programs, or chooses whose they are.
"""

SAME_EVERYWHERE = (
    "SLOTSERVE_TICK_SECONDS",
    "SLOTSERVE_HOST_SILENT_SECONDS",
    "SLOTSERVE_BUFFER_SECONDS",
    "SLOTSERVE_MIN_PRELOAD_SECONDS",
    "SLOTSERVE_DRAIN_SECONDS",
    "SLOTSERVE_STOP_TIMEOUT_SECONDS",
    "SLOTSERVE_LOAD_TIMEOUT_SECONDS",
    "SLOTSERVE_DISK_READ_MBPS",
    "SLOTSERVE_TIME_ZONE",
)
TOLD_TO_HOSTS = (
    "DATABASE_URL",
    "REDIS_URL",
    "SLOTSERVE_TABLE_KEYS",
    "SLOTSERVE_HOST_KEY",
    *SAME_EVERYWHERE,
)
