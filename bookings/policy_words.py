"""Broken rules in words, with their numbers."""

from datetime import date, datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from bookings.policies import Standing
from bookings.policy import Approval, Broken, Claim, Code, left_of
from bookings.policy_runs import BREAK, minutes_beside
from bookings.refusals import BrokenRule
from bookings.site_days import week_of
from lanes.models import Preset


def told(broken: Broken, standing: Standing, claim: Claim) -> BrokenRule:
    """This rule, and how it is broken."""
    return BrokenRule(broken, _words(broken, standing, claim))


def length_words(minutes: float) -> str:
    """A length: "45 min", "8 h", "1 h 30 min", "3 days"; below a minute in seconds."""
    seconds = round(minutes * 60)
    if 0 < seconds < 60:
        return _("%(count)s s") % {"count": seconds}
    whole = -(-seconds // 60)
    hours, rest = divmod(whole, 60)
    if hours >= 48 and not whole % 1440:
        return _("%(count)s days") % {"count": whole // 1440}
    if not hours and rest:
        return _("%(minutes)s min") % {"minutes": rest}
    if not rest:
        return _("%(hours)s h") % {"hours": hours}
    return _("%(hours)s h %(minutes)s min") % {"hours": hours, "minutes": rest}


def left_words(standing: Standing, start: datetime) -> str:
    """What is left of the quotas on the day and in the week of a start; empty without quotas."""
    parts = left_parts(standing, start)
    return _("Left for you: %(parts)s.") % {"parts": ", ".join(parts)} if parts else ""


def left_parts(standing: Standing, start: datetime) -> list[str]:
    """The same, one by one."""
    day = start.astimezone(standing.judge.used.zone).date()
    left = left_of(standing.rules, standing.judge.used, day)
    parts = []
    if left.day_hours is not None:
        when = _day(day, standing)
        parts.append(f"{length_words(left.day_hours * 60)} {when}")
    if left.week_hours is not None:
        when = _week(day - timedelta(days=day.weekday()), standing)
        parts.append(f"{length_words(left.week_hours * 60)} {when}")
    if left.bookings_ahead is not None:
        count = round(left.bookings_ahead)
        words = ngettext("%(count)s booking ahead", "%(count)s bookings ahead", count)
        parts.append(words % {"count": count})
    return parts


def _words(broken: Broken, standing: Standing, claim: Claim) -> str:
    if broken.code in {Code.DAY_FULL, Code.WEEK_FULL}:
        return _quota(broken, standing)
    if broken.code is Code.TOO_MANY_AHEAD:
        return _ahead(broken)
    if broken.code in {Code.NOT_ALLOWED, Code.GPU_NOT_ALLOWED, Code.PRESET_NOT_ALLOWED}:
        return _right(broken, standing, claim)
    return _time(broken)


def _right(broken: Broken, standing: Standing, claim: Claim) -> str:
    lane = standing.lane
    if broken.code is Code.NOT_ALLOWED:
        values = {"lane": lane, "member": standing.owner.username}
        return _("The rules of %(lane)s do not let %(member)s book it.") % values
    if broken.code is Code.GPU_NOT_ALLOWED:
        return _("The whole GPU of %(lane)s is not for you to book: choose a model.") % {
            "lane": lane
        }
    preset = Preset.objects.filter(pk=claim.preset or 0).first()
    return _("%(preset)s is not for you to book on %(lane)s: choose another model.") % {
        "preset": preset,
        "lane": lane,
    }


def _time(broken: Broken) -> str:
    if broken.code is Code.TOO_LONG and broken.used:
        return _together(broken)
    unit = 24 * 60 if broken.code is Code.TOO_FAR_AHEAD else 1
    values = {
        "limit": length_words(broken.limit * unit),
        "asked": length_words(max(broken.asked, 0.0) * unit),
        "over": length_words(broken.over * unit),
        "zone": timezone.get_default_timezone_name(),
    }
    words = {
        Code.OFF_GRID: _(
            "Slots start and end on multiples of %(limit)s, by the clock of %(zone)s."
        ),
        Code.TOO_SHORT: _(
            "The shortest slot is %(limit)s: this one of %(asked)s is %(over)s short."
        ),
        Code.TOO_LONG: _(
            "The longest slot is %(limit)s: this one of %(asked)s is %(over)s too long."
        ),
        Code.TOO_SOON: _("Book at least %(limit)s ahead: this start is %(over)s too soon."),
        Code.TOO_FAR_AHEAD: _("Book at most %(limit)s ahead: this start is %(over)s too far."),
    }
    return words[broken.code] % values


def _together(broken: Broken) -> str:
    """Too long with the member's slots that touch it."""
    values = {
        "limit": length_words(broken.limit),
        "used": length_words(broken.used),
        "asked": length_words(broken.asked),
        "all": length_words(broken.used + broken.asked),
        "over": length_words(broken.over),
        "rest": length_words(BREAK / timedelta(minutes=1)),
    }
    return (
        _(
            "The longest slot is %(limit)s, and slots with less than %(rest)s between them count "
            "as one: with the %(used)s beside it, this one of %(asked)s makes %(all)s, %(over)s "
            "too long."
        )
        % values
    )


def approval_words(standing: Standing, claim: Claim) -> str:
    """Why an administrator must approve a claim; empty where none need."""
    rules, judge = standing.rules, standing.judge
    if standing.owner.is_staff or not judge.needs_approval(claim):
        return ""
    values = {"limit": length_words(rules.approval_hours * 60)}
    if rules.approval is Approval.GPU:
        return _("An administrator must approve it: it is the whole GPU.")
    if rules.approval is not Approval.BEYOND:
        return _("An administrator must approve it.")
    if minutes_beside(claim, judge.used.held):
        words = _(
            "An administrator must approve it: with your slots that touch it, it is longer than "
            "%(limit)s."
        )
        return words % values
    return _("An administrator must approve it: it is longer than %(limit)s.") % values


def _quota(broken: Broken, standing: Standing) -> str:
    values = {
        "used": length_words(broken.used * 60),
        "limit": length_words(broken.limit * 60),
        "asked": length_words(broken.asked * 60),
        "over": length_words(broken.over * 60),
        "when": _when(broken, standing),
    }
    return (
        _("%(used)s booked %(when)s of %(limit)s: this one of %(asked)s is %(over)s too long.")
        % values
    )


def _when(broken: Broken, standing: Standing) -> str:
    day = broken.day
    assert day is not None  # noqa: S101 - quotas have one
    return _week(day, standing) if broken.code is Code.WEEK_FULL else _day(day, standing)


def _week(monday: date, standing: Standing) -> str:
    if week_of(_today(standing)) == week_of(monday):
        return _("this week")
    return _("in the week of %(day)s") % {"day": date_format(monday, "j M")}


def _day(day: date, standing: Standing) -> str:
    days = (day - _today(standing)).days
    if days in {0, 1}:
        return _("tomorrow") if days else _("today")
    return _("on %(day)s") % {"day": date_format(day, "j M")}


def _today(standing: Standing) -> date:
    return standing.now.astimezone(standing.judge.used.zone).date()


def _ahead(broken: Broken) -> str:
    limit, used = round(broken.limit), round(broken.used)
    words = ngettext(
        "%(used)s booking ahead of %(limit)s: this one is one too many.",
        "%(used)s bookings ahead of %(limit)s: this one is one too many.",
        used,
    )
    return words % {"used": used, "limit": limit}
