"""How the reader is told of things, and in which words."""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from lanes.refusals import Refusal
from notices import preferences, push
from notices.events import FOR_ADMINISTRATORS, PERSONAL, Event
from notices.models import MOST_REMINDER_MINUTES, Preference, Subscription
from slotserve.web.access import members_only
from slotserve.web.answers import ORIGIN_ALONE, member, say
from slotserve.web.fields import StyledForm

GRID = "tell"  # the boxes' name; a value is event and channel with a hyphen between


class PreferenceForm(StyledForm):
    """All of the page but the boxes."""

    zone = forms.CharField(
        max_length=64,
        required=False,
        label=gettext_lazy("Time zone"),
        help_text=gettext_lazy("Such as Europe/Berlin; empty: the installation's."),
    )
    language = forms.ChoiceField(required=False, label=gettext_lazy("Language"))
    reminder_minutes = forms.IntegerField(
        min_value=1,
        max_value=MOST_REMINDER_MINUTES,
        label=gettext_lazy("Remind me so many minutes before a slot begins or ends"),
    )
    freed_minutes = forms.IntegerField(
        min_value=1,
        max_value=366 * 24 * 60,
        label=gettext_lazy("Tell me of free time from so many minutes on"),
    )
    freed_days = forms.IntegerField(
        min_value=1, max_value=366, label=gettext_lazy("… that begins within so many days")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["zone"].widget.attrs |= {"list": "zones", "autocomplete": "off"}
        languages = self.fields["language"]
        assert isinstance(languages, forms.ChoiceField)  # noqa: S101 - made above
        languages.choices = [("", _("The installation's")), *settings.LANGUAGES]


@members_only
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Show what is chosen, or save it."""
    held = preferences.preference_of(member(request))
    names = ("zone", "language", "reminder_minutes", "freed_minutes", "freed_days")
    form = PreferenceForm(
        request.POST or None, initial={name: getattr(held, name) for name in names}
    )
    if request.method == "POST" and form.is_valid():
        wish = {**form.cleaned_data, "choices": _chosen(request)}
        saved = preferences.save(member(request), wish)
        if not isinstance(saved, Refusal):
            say(request, saved, _("Saved."))
            return _with_language(saved)
        form.add_error("zone" if saved.code == "unknown_zone" else None, saved.words)
    return _show(request, form, held)


@members_only
@never_cache
@require_POST
def calendar(request: HttpRequest) -> HttpResponse:
    """A new address of the calendar, shown in this answer and never again, or none any more."""
    if "end" in request.POST:
        preferences.end_feed(member(request))
        say(request, None, _("The calendar's address has ended."))
        return redirect("preferences")
    secret = preferences.rotate_feed(member(request))
    address = request.build_absolute_uri(reverse("calendar-feed", args=(secret,)))
    held = preferences.preference_of(member(request))
    names = ("zone", "language", "reminder_minutes", "freed_minutes", "freed_days")
    form = PreferenceForm(initial={name: getattr(held, name) for name in names})
    response = _show(request, form, held, address)
    response["Referrer-Policy"] = ORIGIN_ALONE
    return response


def _with_language(saved: Preference) -> HttpResponse:
    """Back to the page, which is in the language that was chosen from now on."""
    response = redirect("preferences")
    if saved.language:
        name, age = settings.LANGUAGE_COOKIE_NAME, settings.LANGUAGE_COOKIE_AGE
        response.set_cookie(name, saved.language, max_age=age, samesite="Lax")
    return response


def _chosen(request: HttpRequest) -> dict[str, list[str]]:
    """What each event's boxes say."""
    boxes = set(request.POST.getlist(GRID))
    return {
        event.value: [way.value for way in PERSONAL if f"{event.value}-{way.value}" in boxes]
        for event in _events(request)
    }


def _show(
    request: HttpRequest, form: PreferenceForm, held: Preference, address: str = ""
) -> HttpResponse:
    typed = _chosen(request) if form.errors else {}
    context = {
        "form": form,
        "ways": [way.label for way in PERSONAL],
        "rows": [_row(event, held, typed) for event in _events(request)],
        "zones": sorted(available_timezones()),
        "has_feed": bool(held.feed_digest),
        "address": address,
        "browsers": Subscription.objects.filter(person=member(request)),
        "push_key": push.public_key(),
    }
    return render(request, "preferences.html", context, status=400 if form.errors else 200)


def _events(request: HttpRequest) -> list[Event]:
    is_staff = member(request).is_staff
    return [event for event in Event if is_staff or event not in FOR_ADMINISTRATORS]


def _row(event: Event, held: Preference, typed: dict[str, list[str]]) -> dict[str, Any]:
    """An event with its boxes: as they were sent, where the form is shown again, else as kept."""
    ways = typed.get(event.value, preferences.channels_for(held, event))
    boxes = [(way.label, f"{event.value}-{way.value}", way in ways) for way in PERSONAL]
    return {"label": event.label, "boxes": boxes}
