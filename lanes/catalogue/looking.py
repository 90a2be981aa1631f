"""Looking for one known model where it was, in a folder that is scanned or not.

What is registered by name may be of another form: a workflow, weights alone, a folder that some
program knows its way in. Nothing of that is read, and such a folder is not looked through.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISDIR

from django.conf import settings

from lanes.catalogue.facts import UnreadableError
from lanes.catalogue.grouping import GGUF, LONGEST_NAME, OTHER, FileSeen, Found, group
from lanes.catalogue.walking import file_seen, holds_no_models, walk, why_not
from lanes.engines.forms import is_other_file
from wire.words import said


class GoneError(Exception):
    """There is nothing of this path."""


@dataclass(slots=True)
class Looker:
    """Looks for models, and into each folder once."""

    _by_folder: dict[str, dict[str, Found]] = field(default_factory=dict)

    def look(self, path: str) -> Found:
        """The model of this path; GoneError, or UnreadableError with the reason."""
        try:
            status = os.stat(path)
            if S_ISDIR(status.st_mode):
                return self._beside(path).get(path) or _other_folder(path, status)
            seen = file_seen(path)
        except (FileNotFoundError, NotADirectoryError):
            raise GoneError from None
        except (OSError, ValueError) as error:
            no_path = said("its path cannot be")
            reason = why_not(error) if isinstance(error, OSError) else no_path
            raise UnreadableError(said("It cannot be looked at: {why}.", why=reason)) from error
        if seen is None:
            raise UnreadableError(said("It is not a plain file."))
        return self._beside(os.path.dirname(path)).get(path) or _alone(seen)

    def _beside(self, folder: str) -> dict[str, Found]:
        if folder not in self._by_folder:
            found = group(walk(folder, levels=0).files)
            self._by_folder[folder] = {each.path: each for each in found}
        return self._by_folder[folder]


def _other_folder(path: str, status: os.stat_result) -> Found:
    """A folder of another form. It stays the same whatever is put into it."""
    if holds_no_models(path):
        raise UnreadableError(said("It is the system's: no model is in it."))
    if Path(settings.SLOTSERVE_DATA).resolve().is_relative_to(Path(path).resolve()):
        raise UnreadableError(
            said("The keys of SlotServe are in it: give the folder of the model.")
        )
    with os.scandir(path):  # OSError, where nobody can tell what is in it
        folder = FileSeen(path, 0, 0, status.st_dev, status.st_ino)
    return Found(OTHER, path, folder.name[:LONGEST_NAME], (), (folder,), parts=0)


def _alone(seen: FileSeen) -> Found:
    """A file of any name: unless that says otherwise, whoever registered it means a GGUF."""
    kind = OTHER if is_other_file(seen.path) else GGUF
    return Found(kind, seen.path, seen.name, (seen,))
