"""How a shim ends: shared with its worker. Standard library only."""

ENDED = 0  # the server ran and ended
NO_ORDER = 64  # no complete order came
TOO_LATE = 69
NOT_STARTED = 71  # the server could not be started; the record says why
LOCKED = 75  # the lane is

# Nothing is wrong with shims on this host: their worker died, was slow, or another was first.
HARMLESS = frozenset({ENDED, NO_ORDER, TOO_LATE, NOT_STARTED, LOCKED})
