"""The address's query: it goes to the model server as it came, and never with a key in it."""

import re
from urllib.parse import parse_qsl, unquote

from gateway.edge.refusals import EdgeRefusal, refuse

_TOKEN = re.compile(r"(?<![A-Za-z0-9])ss_[A-Za-z0-9_-]{8}")
_KEYS = frozenset({"api_key", "apikey", "x_api_key", "key", "token", "access_token"})
_KEY_SENT = (
    "keys are not taken from the address, where logs keep them: send 'Authorization: Bearer ss_…'. "
    "A key that was sent this way should be revoked."
)


def refuse_query(query: bytes) -> EdgeRefusal | None:
    """Why a query may not pass: it carries a key, or bytes that an address cannot have."""
    if not query:
        return None
    if not query.isascii() or not (text := query.decode("ascii")).isprintable() or " " in text:
        return refuse("invalid_request_error", "the address has bytes that must be escaped.")
    if _TOKEN.search(unquote(unquote(text))) or any(map(_is_key, _pairs(text))):
        return refuse("invalid_api_key", _KEY_SENT)
    return None


def model_of(query: bytes) -> str | EdgeRefusal | None:
    """The model that a query names; None when it names none."""
    if not query:
        return None
    values = {value for name, value in _pairs(query.decode("latin-1")) if name == "model"}
    if len(values) > 1:
        return refuse("invalid_request_error", "the address names more than one model.")
    return next(iter(values), None)


def _pairs(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text, keep_blank_values=True)


def _is_key(pair: tuple[str, str]) -> bool:
    name, value = pair
    return bool(value) and name.lower().replace("-", "_") in _KEYS
