"""SLOTSERVE_TABLE_KEYS: signatures of the route table and sealed keys of model servers.

The first key signs and seals, all verify and open, so keys can be rotated without a stop.
"""

import base64
import hashlib
import hmac
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from wire.env import SettingError, read_path, read_secret, read_text, split_list

LEAST_KEY_CHARACTERS = 32


class Sealer:
    """Signs bytes and seals short texts with the first of some keys; accepts all of them."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        if not keys or any(len(key) < LEAST_KEY_CHARACTERS for key in keys):
            raise SettingError(
                "SLOTSERVE_TABLE_KEYS needs at least one key, each of 32 characters or more, "
                "separated by commas; bin/up makes one in the data folder"
            )
        self._signing = [_derive(key, b"sign") for key in keys]
        fernets = [Fernet(base64.urlsafe_b64encode(_derive(key, b"seal"))) for key in keys]
        self._sealing = MultiFernet(fernets)

    def sign(self, payload: bytes) -> str:
        """HMAC-SHA256 of the payload under the first key, hex."""
        return hmac.new(self._signing[0], payload, hashlib.sha256).hexdigest()

    def verify(self, payload: bytes, signature: str) -> bool:
        """Whether one of the keys made this signature; constant time for each key."""
        return any(
            hmac.compare_digest(hmac.new(key, payload, hashlib.sha256).hexdigest(), signature)
            for key in self._signing
        )

    def seal(self, text: str) -> str:
        """Encrypt a short text, such as a model server's API key."""
        return self._sealing.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str | None:
        """The sealed text, or None when no key opens it."""
        try:
            return self._sealing.decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None


def read_table_keys() -> tuple[str, ...]:
    """SLOTSERVE_TABLE_KEYS, or the lines of SLOTSERVE_DATA/table-keys that `bin/up` writes."""
    keys = split_list(read_secret("SLOTSERVE_TABLE_KEYS"))
    if keys:
        return keys
    path = table_keys_file()
    try:
        return tuple(line for line in path.read_text().split() if line)
    except OSError as error:
        raise SettingError(
            f"SLOTSERVE_TABLE_KEYS is not set and {path} cannot be read ({error.strerror}): "
            "set it, or start with bin/up, which writes the file"
        ) from None


def table_keys_file() -> Path:
    """Where `bin/up` keeps the keys, mode 0600."""
    return read_path("SLOTSERVE_DATA", Path("var")) / "table-keys"


def has_table_keys() -> bool:
    """Whether keys are configured at all."""
    names = ("SLOTSERVE_TABLE_KEYS", "SLOTSERVE_TABLE_KEYS_FILE")
    return any(map(read_text, names)) or table_keys_file().exists()


def _derive(key: str, purpose: bytes) -> bytes:
    return hmac.new(key.encode(), b"slotserve:" + purpose, hashlib.sha256).digest()
