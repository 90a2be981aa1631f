"""Announcements: the banner of every page, and the page where administrators make them."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from lanes import announcements, clock
from lanes.models import Announcement, Level
from lanes.refusals import Refusal
from slotserve.live.state import digest_of
from slotserve.web.access import came_from, members_only, staff_required
from slotserve.web.answers import member, say
from slotserve.web.fields import MomentField, StyledForm

COOKIE = "dismissed"  # the numbers of those that this browser shows no more
COOKIE_SECONDS = 365 * 86_400
MOST_DISMISSED = 50


@dataclass(frozen=True, slots=True)
class Banner:
    """The announcements in force that this browser has not dismissed; the digest is of all."""

    rows: list[Announcement]
    digest: str


class AnnouncementForm(StyledForm):
    """What to tell, and for how long."""

    text = forms.CharField(max_length=300, label=gettext_lazy("Text"))
    level = forms.ChoiceField(choices=Level.choices, label=gettext_lazy("Level"))
    starts_at = MomentField(required=False, label=gettext_lazy("From (optional: now)"))
    ends_at = MomentField(
        required=False,
        label=gettext_lazy("Until (optional: until you end it)"),
    )


def banner(request: HttpRequest) -> dict[str, Any]:
    """`banner` for templates; asked of the database only where it is shown."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {"banner": SimpleLazyObject(lambda: _banner(request))}


def banner_digest(rows: list[Announcement]) -> str:
    """Of those in force, for whoever reads it."""
    return digest_of(*(row.pk for row in rows))


@members_only
@require_safe
def now(request: HttpRequest) -> HttpResponse:
    """The banner alone, for pages that are told it has changed."""
    return render(request, "_announcements.html")


@members_only
@require_POST
def dismiss(request: HttpRequest, pk: str) -> HttpResponse:
    """Show it no more in this browser."""
    gone = [*sorted(_dismissed(request) - {int(pk)}), int(pk)][-MOST_DISMISSED:]
    request.COOKIES[COOKIE] = ".".join(str(number) for number in gone)
    is_part = request.htmx  # type: ignore[attr-defined]
    page = came_from(request, "/")
    answer = render(request, "_announcements.html") if is_part else redirect(page)
    answer.set_cookie(COOKIE, request.COOKIES[COOKIE], COOKIE_SECONDS, samesite="Lax")
    return answer


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Those in force and to come, and a form for another."""
    form = AnnouncementForm(request.POST or None)
    if form.is_valid():
        made = announcements.announce(actor=member(request), **form.cleaned_data)
        if not isinstance(made, Refusal):
            say(request, made, _("Announced."))
            return redirect("announcements")
        form.add_error(None, made.words)
    rows = announcements.not_over(clock.database_now()).select_related("made_by")
    status = 400 if form.is_bound and form.errors else 200
    return render(request, "announcements.html", {"form": form, "rows": rows}, status=status)


@staff_required
@require_POST
def end(request: HttpRequest, pk: str) -> HttpResponse:
    """Show it to nobody any more."""
    row = get_object_or_404(Announcement, pk=pk)
    say(request, announcements.end(row, actor=member(request)), _("It is shown no more."))
    return redirect("announcements")


def _banner(request: HttpRequest) -> Banner:
    """By the web's own clock: a second more or less does not matter, a query on each page does."""
    rows = list(announcements.in_force(timezone.now()))
    gone = _dismissed(request)
    return Banner([row for row in rows if row.pk not in gone], banner_digest(rows))


def _dismissed(request: HttpRequest) -> set[int]:
    words = request.COOKIES.get(COOKIE, "").split(".")
    return {int(word) for word in words if word.isdecimal() and len(word) < 19}
