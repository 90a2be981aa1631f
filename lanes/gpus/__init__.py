"""Cards of a host: what NVML says of them, who holds their memory, and a day of their use.

`nvml` reads, `holders` names processes, `outsiders` and `room` decide (pure), `polling` writes.
"""
