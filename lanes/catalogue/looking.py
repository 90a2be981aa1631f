"""Looking for one known model where it was, in a folder that is scanned or not."""

import os
from dataclasses import dataclass, field
from stat import S_ISDIR

from lanes.catalogue.facts import UnreadableError
from lanes.catalogue.grouping import GGUF, FileSeen, Found, group
from lanes.catalogue.walking import file_seen, walk, why_not


class GoneError(Exception):
    """There is nothing of this path."""


@dataclass(slots=True)
class Looker:
    """Looks for models, and into each folder once."""

    _by_folder: dict[str, dict[str, Found]] = field(default_factory=dict)

    def look(self, path: str) -> Found:
        """The model of this path; GoneError, or UnreadableError with the reason."""
        try:
            if S_ISDIR(os.stat(path).st_mode):
                return self._folder(path)
            seen = file_seen(path)
        except (FileNotFoundError, NotADirectoryError):
            raise GoneError from None
        except (OSError, ValueError) as error:
            reason = why_not(error) if isinstance(error, OSError) else "its path cannot be"
            raise UnreadableError(f"It cannot be looked at: {reason}.") from error
        if seen is None:
            raise UnreadableError("It is not a plain file.")
        return self._beside(os.path.dirname(path)).get(path) or _alone(seen)

    def _folder(self, path: str) -> Found:
        found = self._beside(path).get(path)
        if found is None:
            raise UnreadableError(
                "It is a folder without config.json and *.safetensors: no model is in it."
            )
        return found

    def _beside(self, folder: str) -> dict[str, Found]:
        if folder not in self._by_folder:
            found = group(walk(folder, levels=0).files)
            self._by_folder[folder] = {each.path: each for each in found}
        return self._by_folder[folder]


def _alone(seen: FileSeen) -> Found:
    """A file of any name: whoever registered it says that it is a GGUF."""
    return Found(GGUF, seen.path, seen.name, (seen,))
