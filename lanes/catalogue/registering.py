"""What administrators say of models: folders to look through, files by hand, look again, forget."""

import os
import time
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from lanes import ticks
from lanes.catalogue.facts import UnreadableError
from lanes.catalogue.forgetting import presets_of, strike_off
from lanes.catalogue.grouping import GGUF, Found
from lanes.catalogue.inspecting import LONGEST_TROUBLE, inspect
from lanes.catalogue.looking import GoneError, Looker
from lanes.catalogue.walking import holds_no_models
from lanes.engines.forms import is_other_file
from lanes.locking import one_edit_at_a_time
from lanes.models import Host, ModelFile, ModelFolder, ModelKind, Preset
from lanes.refusals import Refusal
from lanes.validation import not_administrator, refusal_of
from wire.words import kept_of, said

MOST_FOLDERS = 50  # of a host
SHOWN = 10
WHOLE_PATH = said("Give the whole path, beginning with /.")


@transaction.atomic
def register_model_file(
    *, host: Host, path: str, name: str, actor: User | None = None
) -> ModelFile | Refusal:
    """A file or folder that this host's servers can load.

    Only the host itself can look at its files: its worker reads the facts, elsewhere the size too.
    """
    if actor is not None and not actor.is_staff:
        return not_administrator()
    if not os.path.isabs(path):
        return Refusal("no_such_file", WHOLE_PATH)
    path = os.path.normpath(path)
    seen = _seen_here(host, path)
    if isinstance(seen, Refusal):
        return seen
    one_edit_at_a_time()
    made = host.model_files.filter(path=path).first() or ModelFile(host=host, path=path)
    if made.pk and made.forgotten_at is None:
        return Refusal("already_registered", said("This file is already registered on that host."))
    made.name, made.forgotten_at, made.fingerprint = name, None, ""
    if is_other_file(path):
        made.kind = ModelKind.OTHER  # until its host has looked, if that is another
    if seen:
        made.kind, made.size_bytes, made.parts = seen.kind, seen.size, len(seen.files)
        trouble = inspect(seen, time.time_ns()).trouble
        made.trouble, made.words = trouble[:LONGEST_TROUBLE], kept_of(trouble)
    refusal = refusal_of(made)
    if refusal:
        return refusal
    made.save()
    ticks.scan_soon(host.key)
    return made


def doubts(file: ModelFile) -> list[str]:
    """What speaks against a model that was registered just now, in sentences."""
    if file.warning:
        return [file.warning]
    is_seen = file.host.key == settings.SLOTSERVE_HOST_KEY
    if is_seen or file.kind != GGUF or file.path.lower().endswith(".gguf"):
        return []
    return [
        _(
            "%(path)s does not end in .gguf, and nobody has looked into it yet: its host does so "
            "within a minute. Look then whether it has a warning."
        )
        % {"path": file.path}
    ]


@transaction.atomic
def forget_model_file(file: ModelFile, *, actor: User) -> Refusal | None:
    """Strike a model off the list; its file stays, and a scanned folder shows it again.

    Revisions that are nobody's now keep its name. Refusals: not_administrator, in_use.
    """
    if not actor.is_staff:
        return not_administrator()
    one_edit_at_a_time()
    presets = list(presets_of(file))
    if presets:
        words = said(
            "{file} is the model of {listed}: delete or archive them first.",
            file=str(file),
            listed=_listed(presets),
        )
        return Refusal("in_use", words)
    strike_off(ModelFile.objects.filter(pk=file.pk))
    return None


@transaction.atomic
def add_folder(*, host: Host, path: str, actor: User | None) -> ModelFolder | Refusal:
    """Have a folder of this host looked through from now on."""
    if actor is not None and not actor.is_staff:
        return not_administrator()
    if not os.path.isabs(path):
        return Refusal("no_such_folder", WHOLE_PATH)
    path = os.path.normpath("/" + path.lstrip("/"))
    one_edit_at_a_time()
    refusal = _unfit(host, path) or _overlapping(host, path)
    made = ModelFolder(host=host, path=path)
    refusal = refusal or refusal_of(made)
    if refusal:
        return refusal
    made.save()
    ticks.scan_soon(host.key)
    return made


@transaction.atomic
def remove_folder(folder: ModelFolder, *, actor: User) -> Refusal | None:
    """Look through it no longer; its models are forgotten but for those that presets use."""
    if not actor.is_staff:
        return not_administrator()
    one_edit_at_a_time()
    strike_off(ModelFile.objects.filter(folder=folder))
    folder.delete()
    return None


@transaction.atomic
def rescan(host: Host, *, actor: User) -> Refusal | None:
    """Have a host look through its folders now, and read every header anew."""
    if not actor.is_staff:
        return not_administrator()
    host.model_files.update(fingerprint="")
    ticks.scan_soon(host.key)
    return None


def _seen_here(host: Host, path: str) -> Found | Refusal | None:
    """What is there, if this is the host; None on another machine."""
    if host.key != settings.SLOTSERVE_HOST_KEY:
        return None
    try:
        found = Looker().look(path)
    except (GoneError, UnreadableError):
        found = None
    if found is None or not os.access(path, os.R_OK):
        return Refusal(
            "no_such_file",
            said(
                "{path} is not a model file that can be read on {host}.", path=path, host=host.name
            ),
        )
    return found


def _unfit(host: Host, path: str) -> Refusal | None:
    if holds_no_models(path):
        return Refusal(
            "no_such_folder", said("{path} holds no models: give the folder that does.", path=path)
        )
    if host.key == settings.SLOTSERVE_HOST_KEY and not Path(path).is_dir():
        return Refusal(
            "no_such_folder", said("{path} is not a folder on {host}.", path=path, host=host.name)
        )
    if host.model_folders.count() >= MOST_FOLDERS:
        return Refusal(
            "too_many",
            said(
                "{host} has {most_folders} folders: give one that holds several.",
                host=host.name,
                most_folders=MOST_FOLDERS,
            ),
        )
    return None


def _overlapping(host: Host, path: str) -> Refusal | None:
    """Each folder is looked through once."""
    for other in host.model_folders.all():
        if path == other.path or path.startswith(other.path + "/"):
            return Refusal(
                "already_registered", said("{path} is looked through already.", path=other.path)
            )
        if other.path.startswith(path + "/"):
            return Refusal(
                "already_registered",
                said(
                    "{path} in it is looked through already: remove that one first.",
                    path=other.path,
                ),
            )
    return None


def _listed(presets: list[Preset]) -> str:
    shown = ", ".join(str(each) for each in presets[:SHOWN])
    if len(presets) <= SHOWN:
        return shown
    return said("{names} and {count} more", names=shown, count=len(presets) - SHOWN)
