"""The page for administrators of who changed what."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_safe

from lanes.audit import changes_of
from lanes.models import AuditEntry, Subject
from slotserve.audit_links import links_of
from slotserve.audit_question import NAMES, AuditAsked, read_audit_question
from slotserve.csv_answers import Cell, csv_answer
from slotserve.web.access import staff_required

SHOWN = 50  # a page
BATCH = 500  # of a file
CSV_HEAD = ("id", "at", "actor", "kind", "subject", "name", "sentence", "changes")


@staff_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Entries, the newest first, a page at a time."""
    asked = _asked(request)
    found = list(asked.entries[: SHOWN + 1])
    shown = found[:SHOWN]
    links = links_of(shown)
    context: dict[str, Any] = {
        "rows": [(entry, changes_of(entry), links.get(entry.pk, "")) for entry in shown],
        "older": _query(request, before=found[SHOWN - 1].pk) if len(found) > SHOWN else "",
        "newest": _query(request) if request.GET.get("before") else "",
        "wish": {name: request.GET.get(name, "") for name in NAMES},
        "query": _query(request),
        "first": request.GET.get("from", ""),
        "subjects": Subject.choices,
        "asked": asked,
    }
    return render(request, "audit.html", context, status=400 if asked.errors else 200)


@staff_required
@require_GET
def export(request: HttpRequest) -> HttpResponse:
    """The same as CSV."""
    asked = _asked(request)
    if asked.errors:
        words = " ".join(asked.errors.values())
        return HttpResponse(words, status=400, content_type="text/plain; charset=utf-8")
    return cast(HttpResponse, csv_answer("audit.csv", batches(asked)))


def batches(asked: AuditAsked) -> Iterator[Sequence[Sequence[Cell]]]:
    """A file's rows, by number, so that what is added meanwhile moves nothing."""
    entries = asked.entries
    yield [CSV_HEAD]
    found = list(entries[:BATCH])
    while found:
        yield [_csv_row(entry) for entry in found]
        found = list(entries.filter(pk__lt=found[-1].pk)[:BATCH])


def _csv_row(entry: AuditEntry) -> Sequence[Cell]:
    changes = "; ".join(f"{each.label}: {each.old} → {each.new}" for each in changes_of(entry))
    names = (entry.actor_name, entry.kind, entry.subject, entry.subject_name)
    return [entry.pk, entry.at.isoformat(), *names, entry.told, changes]


def _asked(request: HttpRequest) -> AuditAsked:
    return read_audit_question({name: str(value) for name, value in request.GET.items()})


def _query(request: HttpRequest, **more: int) -> str:
    kept: dict[str, str | int] = {
        n: v for n in NAMES if n != "before" and (v := request.GET.get(n))
    }
    return urlencode({**kept, **more})
