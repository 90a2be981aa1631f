"""Brings what is known of a host's models into line with its disks.

Safe to skip, repeat and overlap. It opens only files that are new or have changed; a model whose
folder cannot be looked into stays what it was, and only one that is not there is gone.
"""

import logging
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import ProtectedError, Q

from lanes import clock, ticks
from lanes.catalogue.facts import UnreadableError
from lanes.catalogue.forgetting import strike_off
from lanes.catalogue.grouping import Found, group, hard_links
from lanes.catalogue.inspecting import Inspected, inspect, trouble_columns
from lanes.catalogue.looking import GoneError, Looker
from lanes.catalogue.walking import walk
from lanes.events import add_event
from lanes.models import Host, Lane, ModelFile, ModelFolder, ModelKind
from wire.words import kept_of, marked, said, together

log = logging.getLogger(__name__)
MOST_MODELS = 1000  # of one folder
READING_SECONDS = 5.0  # for headers in one scan; the rest is left to the next
FORGOTTEN_AFTER = timedelta(days=7)
EVERY_SECONDS = 60.0
_lock = threading.Lock()
_asked: list[float] = []  # when a scan was last due, by this process's clock


@dataclass(slots=True)
class _Scan:
    host: Host
    now: datetime
    known: dict[str, ModelFile]
    reading: float = 0.0  # seconds so far
    is_more: bool = False


def is_due() -> bool:
    """Whether it is time to look again: once a minute for each worker."""
    now = time.monotonic()
    if _asked and now < _asked[-1] + EVERY_SECONDS:
        return False
    _asked[:] = [now]
    return True


def scan_host(host_key: str) -> bool:
    """Look through the folders of this worker's host; whether there was more than time for."""
    host = Host.objects.filter(key=host_key).first()
    if host is None or host_key != settings.SLOTSERVE_HOST_KEY:
        return False
    if not _lock.acquire(blocking=False):
        return False  # one is under way
    try:
        return _scan(host)
    finally:
        _lock.release()


def _scan(host: Host) -> bool:
    known = {file.path: file for file in host.model_files.all()}
    now = clock.database_now()
    scan = _Scan(host, now, known)
    met: set[str] = set()
    for folder in host.model_folders.all():
        met.update(_scan_folder(scan, folder))
    looker = Looker()
    for path, file in known.items():
        if path not in met:
            _look_for(scan, file, looker)
    _forget(scan)
    return scan.is_more


def _scan_folder(scan: _Scan, folder: ModelFolder) -> set[str]:
    """Take in what is in a folder; the paths of its models."""
    listing = walk(folder.path)
    models = group(listing.files)
    for found in models[:MOST_MODELS]:
        try:
            _take_in(scan, found, folder)
        except Exception:
            log.exception("model not taken in path=%r", found.path)
    sentences = [*listing.sentences, *hard_links(listing.files)]
    if len(models) > MOST_MODELS:
        text = marked("It holds {count} models, of which the first {most} are taken.")
        sentences.append(said(text, count=len(models), most=MOST_MODELS))
    trouble = together(" ", sentences)
    ModelFolder.objects.filter(pk=folder.pk).update(
        scanned_at=scan.now, found=len(models), trouble=trouble[:1000], words=kept_of(trouble)
    )
    return {found.path for found in models[:MOST_MODELS]}


def _look_for(scan: _Scan, file: ModelFile, looker: Looker) -> None:
    """A model that no folder showed: registered by hand, gone, or in a folder not looked into."""
    try:
        _take_in(scan, _as_before(file, looker.look(file.path)), None)
    except GoneError:
        _mark_missing(scan, file)
    except UnreadableError as error:
        _update(scan, file, fingerprint="", **trouble_columns(error.words))


def _as_before(file: ModelFile, found: Found) -> Found:
    """A model in Hugging Face's form that lost its files is broken, not of another form."""
    if (file.kind, found.kind) == (ModelKind.HUGGING_FACE, ModelKind.OTHER):
        raise UnreadableError(
            said(
                "Its config.json or its *.safetensors are not there any more: copy them back, or "
                "forget it and register the folder anew as what it is now."
            )
        )
    return found


def _take_in(scan: _Scan, found: Found, folder: ModelFolder | None) -> None:
    """Register a new model, or report what is different of a known one."""
    file = scan.known.get(found.path)
    is_back = file is not None and folder is not None and file.forgotten_at is not None
    is_same = file and (file.kind, file.fingerprint) == (found.kind, found.fingerprint)
    if file and is_same and file.missing_since is None and not is_back:
        return
    if scan.reading > READING_SECONDS:
        scan.is_more = True
        return
    began = time.monotonic()
    seen = inspect(found, time.time_ns())
    scan.reading += time.monotonic() - began
    if file is None:
        _register(scan, found, seen, folder)
    else:
        back = {"forgotten_at": None} if is_back else {}
        _update(scan, file, missing_since=None, **back, **_columns(found, seen))


def _columns(found: Found, seen: Inspected) -> dict[str, object]:
    facts = seen.facts
    return {
        "kind": found.kind,
        "size_bytes": found.size,
        "parts": found.parts if found.parts > 1 else len(found.files),
        "projector_path": found.projector.path if found.projector else "",
        "architecture": facts.architecture,
        "parameters": facts.parameters,
        "quantisation": facts.quantisation,
        "context_length": facts.context_length,
        "vocabulary_size": facts.vocabulary_size,
        "has_chat_template": facts.has_chat_template,
        "fingerprint": found.fingerprint if seen.is_settled else "",
        **trouble_columns(seen.trouble),
    }


def _register(scan: _Scan, found: Found, seen: Inspected, folder: ModelFolder | None) -> None:
    if len(found.path) > 1024:
        return  # longer than what is stored; nobody names a model so
    given = {"host": scan.host, "path": found.path}
    values = {"name": found.name, "folder": folder, **_columns(found, seen)}
    with transaction.atomic():
        # Whoever removed the folder meanwhile does not want its models back.
        if folder and not ModelFolder.objects.select_for_update().filter(pk=folder.pk).exists():
            return
        made, is_new = ModelFile.objects.get_or_create(**given, defaults=values)
    if is_new:
        log.info("model found host=%s path=%s", scan.host.key, made.path)


def _mark_missing(scan: _Scan, file: ModelFile) -> None:
    if file.missing_since is None:
        _update(scan, file, missing_since=scan.now, fingerprint="")


def _update(scan: _Scan, file: ModelFile, **columns: object) -> None:
    """Write what is different, over the row that was seen; tell lanes when it goes or is back."""
    changes = {name: value for name, value in columns.items() if getattr(file, name) != value}
    if not changes:
        return
    with transaction.atomic():
        rows = ModelFile.objects.filter(pk=file.pk, fingerprint=file.fingerprint)
        if not rows.update(**changes):
            return
        log.info("model changed host=%s path=%s: %s", scan.host.key, file.path, ", ".join(changes))
        if "missing_since" in changes:
            _tell(scan, file, is_gone=changes["missing_since"] is not None)
        if {"missing_since", "size_bytes"} & set(changes):
            ticks.plan_soon()


def _tell(scan: _Scan, file: ModelFile, *, is_gone: bool) -> None:
    """A sentence on each lane that would load it."""
    wanting = Lane.objects.filter(
        Q(default_preset__current__model_file=file) | Q(order__target__model_file=file)
    )
    words = said("The file of the model {model} is back.", model=file.name)
    if is_gone:
        words = said("The file of the model {model} is gone.", model=file.name)
    for lane in wanting.distinct():
        add_event(lane, scan.now, "model", words)


def _forget(scan: _Scan) -> None:
    """Models that were found in a folder, went away long ago, and are nobody's."""
    long_ago = scan.now - FORGOTTEN_AFTER
    gone = ModelFile.objects.filter(host=scan.host, folder__isnull=False)
    try:
        with transaction.atomic():
            strike_off(gone.filter(missing_since__lt=long_ago))
    except ProtectedError:  # a preset of one was made just now
        log.info("models kept host=%s", scan.host.key)
