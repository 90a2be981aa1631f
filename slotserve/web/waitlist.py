"""Waiting for time: from the booking form's refusals, and the list of what one waits for."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from bookings import waitlist
from bookings.models import Booking, Kind, State, Waiting
from bookings.waitlist import Wanted
from lanes import clock
from lanes.models import Lane, Preset
from lanes.refusals import Refusal
from slotserve.api.errors import STATUS_OF
from slotserve.live.reading import bookings_digest, minute_digest
from slotserve.web.access import came_from, members_only
from slotserve.web.answers import leave_for, member, say
from slotserve.web.fields import LocalDateTimeInput, StyledForm, next_quarter
from slotserve.web.forms import LENGTHS, PRESET, WHOLE_GPU, BookForm
from slotserve.web.repeating import RepeatForm
from slotserve.web.rows import rows
from slotserve.web.wall_times import AskingForm, WallClockField

WITHIN = {"0": timedelta(), "1": timedelta(days=1), "7": timedelta(days=7)}


class LanesField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Lanes to tick, by their names."""

    def label_from_instance(self, obj: Lane) -> str:
        """What the list says."""
        return obj.name


class WaitForm(AskingForm, StyledForm):
    """A wish to wait: for so long, on any of some lanes, within a window."""

    lanes = LanesField(
        Lane.objects.none(),
        label=gettext_lazy("On one of"),
        widget=forms.CheckboxSelectMultiple,
    )
    what = forms.ChoiceField(label=gettext_lazy("Load"))
    minutes = forms.TypedChoiceField(
        label=gettext_lazy("Length"), choices=LENGTHS[:-1], coerce=int, initial="60"
    )
    opens = WallClockField(label=gettext_lazy("Not before"), widget=LocalDateTimeInput())
    closes = WallClockField(label=gettext_lazy("Until"), widget=LocalDateTimeInput())
    purpose = forms.CharField(
        max_length=200, required=False, label=gettext_lazy("What for (optional)")
    )

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lanes = Lane.objects.filter(enabled=True).order_by("name")
        self.fields["lanes"].queryset = lanes  # type: ignore[attr-defined]
        presets = Preset.objects.offered().order_by("name")
        choices = [(PRESET + preset.slug, preset.name) for preset in presets]
        choices.append((WHOLE_GPU, _("The whole GPU, without a model server")))
        self.fields["what"].choices = choices  # type: ignore[attr-defined]
        self.fields["opens"].initial = next_quarter(now)
        self.fields["closes"].initial = next_quarter(now) + timedelta(days=1)

    def clean(self) -> dict[str, Any]:
        """The window's times as moments; what is not one moment is asked."""
        cleaned = super().clean() or {}
        return cleaned | {name: self.moment(name) for name in ("opens", "closes")}

    def wanted(self) -> Wanted:
        """The arguments of the service."""
        said = self.cleaned_data
        slug = said["what"].removeprefix(PRESET)
        preset = None if slug == WHOLE_GPU else Preset.objects.get(slug=slug)
        return Wanted(
            lanes=said["lanes"],
            kind=Kind.MODEL if preset else Kind.GPU,
            preset=preset,
            minutes=said["minutes"],
            opens=said["opens"],
            closes=said["closes"],
            purpose=said["purpose"],
        )


@members_only
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """What the member waits for, each with its place, what is held, and a form to wait."""
    digest = bookings_digest()  # before what is shown: what comes between is asked for anew
    now, user = clock.database_now(), member(request)
    digest = f"{digest} {minute_digest(now)}"
    if request.method == "POST" and "within" in request.POST:
        return wait(request)
    form = WaitForm(request.POST or None, now=now)
    refusal: Refusal | None = None
    if form.is_valid():
        done = waitlist.wait(owner=user, wanted=form.wanted())
        if not isinstance(done, Refusal):
            messages.success(request, _("You wait for it: you are told when it is free."))
            return redirect("wait")
        refusal = done
        form.add_error(None, done.words)
    held = Booking.objects.filter(owner=user, state=State.HELD, held_until__gt=now, end__gt=now)
    context = {
        "form": form,
        "places": waitlist.places_of(user, now),
        "held": rows(held.select_related("lane", "preset", "owner").order_by("start"), user, now),
        "back": request.path,
        "digest": digest,
    }
    status = STATUS_OF.get(refusal.code, 400) if refusal else 400 if form.errors else 200
    is_part = request.htmx  # type: ignore[attr-defined]
    template = "_waitlist.html" if is_part else "waitlist.html"
    return render(request, template, context, status=status)


def wait(request: HttpRequest) -> HttpResponse:
    """Wait for what the booking form says, or for as long within a day or a week of its start."""
    now = clock.database_now()
    form, repeat = BookForm(request.POST, now=now), RepeatForm(request.POST)
    within = WITHIN.get(request.POST.get("within", ""))
    done: object = Refusal("invalid", _("Say which lane, from when and how long."))
    if form.is_valid() and within == timedelta() and form.data.get("begins") == "now":
        done = Refusal("invalid", _("A slot that begins now passes meanwhile: wait for any time."))
    elif form.is_valid() and within is not None:
        done = waitlist.wait(owner=member(request), wanted=_wanted(form, within, now))
    if isinstance(done, Refusal):  # what was typed stays
        context = {"form": form, "repeat": repeat, "refusal": done, "can_wait": waits_offered(form)}
        return render(request, "book.html", context, status=400)
    messages.success(request, _("You wait for it: you are told when it is free."))
    return leave_for(request, reverse("wait"))


@members_only
@require_POST
def leave(request: HttpRequest, pk: int) -> HttpResponse:
    """Wait no more."""
    waiting = get_object_or_404(Waiting, pk=pk, owner=member(request))
    say(request, waitlist.leave(waiting, actor=member(request)), _("You wait for it no more."))
    return redirect(came_from(request, reverse("bookings")))


def waits_offered(form: BookForm) -> list[tuple[str, str]]:
    """The ways to wait: what a button sends, and says. Of a slot that would begin now less is left
    by the minute, so that it is never free for as long."""
    this = [("0", _("Wait for this time"))] if form.data.get("begins") != "now" else []
    return [
        *this,
        ("1", _("Wait for any time within a day")),
        ("7", _("Wait for any time within a week")),
    ]


def _wanted(form: BookForm, within: timedelta, now: datetime) -> Wanted:
    wish = form.wish()
    start = wish["start"] or now
    minutes = max(int((wish["end"] - start) / timedelta(minutes=1)), 0)
    closes = max(wish["end"], start + within) if within else wish["end"]
    return Wanted(
        lanes=[wish["lane"]],
        kind=wish["kind"],
        preset=wish["preset"],
        minutes=minutes,
        opens=start,
        closes=closes,
        purpose=wish["purpose"],
    )
