"""Addresses of the database and of Valkey, with passwords that may have settings of their own."""

from urllib.parse import quote, unquote, urlsplit, urlunsplit

from wire.env import SettingError, read_secret

DEFAULT_REDIS_URL = "redis://127.0.0.1:6379/0"


def read_redis_url(written: str = "") -> str:
    """REDIS_URL, or what `bin/up` has written, or Valkey's usual port on this host.

    With SLOTSERVE_REDIS_PASSWORD in it, if that is set.
    """
    url = read_secret("REDIS_URL") or written or DEFAULT_REDIS_URL
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise SettingError("REDIS_URL: give redis://, rediss:// or unix:///path?db=N")
    _refuse_odd("REDIS_URL", url)
    password = read_secret("SLOTSERVE_REDIS_PASSWORD")
    return _with_password("REDIS_URL", url, "SLOTSERVE_REDIS_PASSWORD", password)


def read_database_url(default: str) -> str:
    """DATABASE_URL, with SLOTSERVE_DATABASE_PASSWORD in it, if that is set."""
    url = read_secret("DATABASE_URL") or default
    _refuse_odd("DATABASE_URL", url)
    password = read_secret("SLOTSERVE_DATABASE_PASSWORD")
    return _with_password("DATABASE_URL", url, "SLOTSERVE_DATABASE_PASSWORD", password)


def url_for_hosts(setting: str, url: str, own: str) -> str:
    """The URL under which other machines reach what this one reaches as `own`: by default the same.

    One without user and password has those of `own`, and one without password that of the same
    user. SettingError for another user without a password: it is none of `own`'s.
    """
    _refuse_odd(setting, url)
    parts, ours = urlsplit(url), urlsplit(own)
    if not url or not parts.hostname or parts.password or not ours.password:
        return url or own
    if parts.username not in {None, "", ours.username}:
        user = unquote(parts.username or "")
        raise SettingError(f"{setting} has no password of {user}: write user:password@ into it")
    place = parts.netloc.rpartition("@")[2]
    netloc = f"{ours.username or ''}@{place}"
    return _with(urlunsplit(parts._replace(netloc=netloc)), unquote(ours.password))


def without_password(url: str) -> str:
    """To be shown."""
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{place}", query=""))


def _refuse_odd(setting: str, url: str) -> None:
    """What no parser takes; its text is not repeated, for the password in it."""
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise SettingError(f"{setting} is no address: {error}") from None


def _with_password(setting: str, url: str, name: str, password: str) -> str:
    """The URL with the password, where that has a setting of its own."""
    if not password:
        return url
    parts = urlsplit(url)
    if not parts.hostname:
        raise SettingError(f"{name} is set, but {setting} names no host that would ask for it")
    if parts.password:
        raise SettingError(f"{setting} has a password and {name} is set, too: keep one of them")
    return _with(url, password)


def _with(url: str, password: str) -> str:
    parts = urlsplit(url)
    user, _, place = parts.netloc.rpartition("@")
    netloc = f"{user}:{quote(password, safe='')}@{place}"
    return urlunsplit(parts._replace(netloc=netloc))
