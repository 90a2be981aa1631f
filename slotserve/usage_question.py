"""What may be asked of usage, by page, CSV and REST alike: the period, whose, where, what."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from gateway.usage_days import day_of
from gateway.usage_tables import BY, Question
from lanes.models import Lane

DAYS = 30
MOST_DAYS = 3660
YEARS = range(1970, 2500)
NAMES = ("from", "to", "member", "lane", "preset", "by")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and how its answer is divided; or what is wrong, by the parameter's name."""

    question: Question
    by: str
    errors: Mapping[str, str]


def read_question(values: Mapping[str, str], viewer: User, now: datetime) -> Asked:
    """Read `from`, `to` (days, both included; the last 30), `member` (a user name), `lane` and
    `preset` (slugs) and `by`. What is wrong is left out of the question. One query for a lane."""
    errors: dict[str, str] = {}
    today = day_of(now)
    last = _day(values, "to", errors) or today
    first = _day(values, "from", errors) or last - timedelta(days=DAYS - 1)
    if not errors and not 0 <= (last - first).days < MOST_DAYS:
        errors["from"] = _("The period must end after it begins, and last ten years at most.")
        first, last = today - timedelta(days=DAYS - 1), today
    by = values.get("by") or ("member" if viewer.is_staff else "lane")
    if by not in BY:
        errors["by"] = _("Choose one of %(names)s.") % {"names": ", ".join(BY)}
        by = "lane"
    lane_id = _lane(values.get("lane", ""), errors)
    question = Question(first, last, values.get("member", ""), lane_id, values.get("preset", ""))
    return Asked(question, by, errors)


def _day(values: Mapping[str, str], name: str, errors: dict[str, str]) -> date | None:
    text = values.get(name, "")
    try:
        day = date.fromisoformat(text) if text else None
        if day is None or day.year in YEARS:
            return day
        raise ValueError
    except ValueError:
        errors[name] = _("%(text)s is no day: write it as 2030-01-31.") % {"text": text[:40]}
        return None


def _lane(slug: str, errors: dict[str, str]) -> int | None:
    if not slug:
        return None
    pk = Lane.objects.filter(slug=slug).values_list("pk", flat=True).first()
    if pk is None:
        errors["lane"] = _("There is no lane %(slug)s.") % {"slug": slug[:63]}
    return pk
