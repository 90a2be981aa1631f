"""Which values are never shown: those of variables whose names say that they are secret. Pure."""

MASK = "••••"
SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")


def is_secret(name: str) -> bool:
    """Whether a variable of this name holds what only its program should read."""
    return any(word in name.upper() for word in SECRET_WORDS)


def shown(name: str, value: str) -> str:
    """The value as a page may show it."""
    return MASK if is_secret(name) else value
