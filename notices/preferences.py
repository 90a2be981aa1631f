"""How each person wants to be told, and in which words: the one writer of `Preference`."""

import contextlib
import hashlib
import secrets
from collections.abc import Iterator, Mapping
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone, translation

from lanes.refusals import Refusal
from notices.events import PERSONAL, Channel, Event, default_channels
from notices.models import MOST_REMINDER_MINUTES, Preference
from wire.words import said
from wire.zones import zone_named

UNKNOWN_ZONE = Refusal("unknown_zone", said("There is no time zone of this name."))
UNKNOWN_LANGUAGE = Refusal("unknown_language", said("These pages are not made in this language."))
BAD_REMINDER = Refusal(
    "bad_reminder", said("A reminder comes 1 to {most} minutes before.", most=MOST_REMINDER_MINUTES)
)
BAD_FREED = Refusal(
    "bad_freed", said("Free time is told from 1 minute on, and for 1 to 366 days ahead at most.")
)
UNKNOWN_CHOICE = Refusal(
    "unknown_choice", said("There is no such notice, or no such way of telling it.")
)


def preference_of(person: User) -> Preference:
    """What the person chose; unsaved and with the usual choices, if nothing yet."""
    try:
        found: Preference = person.preference
    except Preference.DoesNotExist:
        return Preference(person=person)
    return found


def channels_for(preference: Preference, event: Event) -> frozenset[Channel]:
    """By which ways the person is told of it."""
    chosen = preference.choices.get(event.value)
    if not isinstance(chosen, list):
        return default_channels(event)
    return frozenset(Channel(each) for each in chosen if each in PERSONAL)


def zone_of(preference: Preference) -> ZoneInfo:
    """The person's zone, else the installation's."""
    return zone_named(preference.zone) or ZoneInfo(settings.TIME_ZONE)


@contextlib.contextmanager
def in_words_of(preference: Preference) -> Iterator[None]:
    """The person's language and zone in force."""
    language = preference.language or settings.LANGUAGE_CODE
    with translation.override(language), timezone.override(zone_of(preference)):
        yield


def save(person: User, wish: Mapping[str, object]) -> Preference | Refusal:
    """Change what `wish` names: zone, language, reminder_minutes, freed_minutes, freed_days, and
    choices (event -> channels; those left out stay).

    Refusals: unknown_zone, unknown_language, bad_reminder, bad_freed, unknown_choice.
    """
    preference = preference_of(person)
    for name, value in wish.items():
        if name != "choices":
            setattr(preference, name, value)
    chosen = wish.get("choices", {})
    refusal = _objection(preference) or _choices_objection(chosen)
    if refusal:
        return refusal
    assert isinstance(chosen, Mapping)  # noqa: S101 - `_choices_objection` has seen to it
    kept = {event: sorted(map(str, ways)) for event, ways in chosen.items()}
    preference.choices = {**preference.choices, **kept}
    names = [*wish.keys()]
    _store(preference, names)
    return preference


def remember(person: User, zone: str, language: str) -> None:
    """Keep what the browser says of somebody of whom it is not known yet."""
    preference = preference_of(person)
    learnt = {"zone": zone if zone_named(zone) else "", "language": _language(language)}
    new = {name: value for name, value in learnt.items() if value and not getattr(preference, name)}
    for name, value in new.items():
        setattr(preference, name, value)
    if new:
        _store(preference, [*new])


def rotate_feed(person: User) -> str:
    """A new secret for the person's calendar, shown this once; the one before ends."""
    secret = secrets.token_urlsafe(32)
    preference = preference_of(person)
    preference.feed_digest = digest(secret)
    _store(preference, ["feed_digest"])
    return secret


def end_feed(person: User) -> None:
    """No address shows the person's calendar any more."""
    Preference.objects.filter(person=person).update(feed_digest="")


def owner_of_feed(secret: str) -> User | None:
    """Whose calendar it is; found by digest, so that timing tells nothing."""
    found = Preference.objects.filter(feed_digest=digest(secret), person__is_active=True)
    preference = found.select_related("person").first()
    return preference.person if preference else None


def digest(secret: str) -> str:
    """SHA-256, hex: enough for a secret of 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _store(preference: Preference, names: list[str]) -> None:
    """Write these columns alone: another page may have changed others meanwhile."""
    values = {name: getattr(preference, name) for name in names}
    Preference.objects.update_or_create(person=preference.person, defaults=values)


def _objection(preference: Preference) -> Refusal | None:
    if preference.zone and not zone_named(preference.zone):
        return UNKNOWN_ZONE
    if preference.language and not _language(preference.language):
        return UNKNOWN_LANGUAGE
    if not 1 <= preference.reminder_minutes <= MOST_REMINDER_MINUTES:
        return BAD_REMINDER
    days, minutes = preference.freed_days, preference.freed_minutes
    return None if 1 <= days <= 366 and 1 <= minutes <= 366 * 24 * 60 else BAD_FREED


def _choices_objection(chosen: object) -> Refusal | None:
    if not isinstance(chosen, Mapping):
        return UNKNOWN_CHOICE
    for event, ways in chosen.items():
        if event not in Event.values or not isinstance(ways, list | tuple | set | frozenset):
            return UNKNOWN_CHOICE
        if any(way not in PERSONAL for way in ways):
            return UNKNOWN_CHOICE
    return None


def _language(name: str) -> str:
    return name if name in dict(settings.LANGUAGES) else ""
