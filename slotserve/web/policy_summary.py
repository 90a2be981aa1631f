"""What a row of rules says, in short words for a list."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from bookings.models import Policy
from bookings.policy_rows import ApprovalChoice, PresetChoice
from bookings.policy_words import length_words


def summary(policy: Policy) -> list[str]:
    """One piece for each field that says something. Give it its presets prefetched."""
    return [
        *_what(policy),
        *_when(policy),
        *_how_much(policy),
        *_approval(policy),
        *_unused(policy),
    ]


def _what(policy: Policy) -> Iterator[str]:
    if policy.may_book is not None:
        yield _("may book") if policy.may_book else _("may not book")
    if policy.may_book_gpu is not None:
        yield _("whole GPUs too") if policy.may_book_gpu else _("no whole GPUs")
    if policy.preset_choice == PresetChoice.ANY:
        yield _("every model")
    elif policy.preset_choice:
        names = ", ".join(preset.name for preset in policy.presets.all())
        yield _("only %(models)s") % {"models": names} if names else _("no model at all")


def _when(policy: Policy) -> Iterator[str]:
    if policy.grid_minutes is not None:
        yield _limit(policy.grid_minutes, _("on multiples of %(limit)s"), _("on no grid"))
    if policy.min_minutes is not None:
        yield _limit(policy.min_minutes, _("at least %(limit)s long"), _("as short as one likes"))
    if policy.max_minutes is not None:
        yield _limit(policy.max_minutes, _("at most %(limit)s long"), _("as long as one likes"))
    if policy.notice_minutes is not None:
        yield _limit(policy.notice_minutes, _("at least %(limit)s from now"), _("at once"))
    if policy.ahead_days is not None:
        at_most = _("at most %(limit)s ahead")
        yield _limit(policy.ahead_days * 1440, at_most, _("as far ahead as one likes"))


def _how_much(policy: Policy) -> Iterator[str]:
    if policy.day_hours is not None:
        yield _limit(policy.day_hours * 60, _("%(limit)s a day"), _("any time of a day"))
    if policy.week_hours is not None:
        yield _limit(policy.week_hours * 60, _("%(limit)s a week"), _("any time of a week"))
    if policy.bookings_ahead:
        words = ngettext(
            "%(count)s booking ahead", "%(count)s bookings ahead", policy.bookings_ahead
        )
        yield words % {"count": policy.bookings_ahead}
    elif policy.bookings_ahead is not None:
        yield _("any number of bookings ahead")


def _approval(policy: Policy) -> Iterator[str]:
    words = {
        ApprovalChoice.NEVER: _("no approval"),
        ApprovalChoice.GPU: _("approval of whole GPUs"),
        ApprovalChoice.ALWAYS: _("approval of all"),
    }
    if policy.approval == ApprovalChoice.BEYOND:
        limit = length_words((policy.approval_hours or 0) * 60)
        yield _("approval beyond %(limit)s") % {"limit": limit}
    elif policy.approval:
        yield words[ApprovalChoice(policy.approval)]
    if policy.pending_hours is not None:
        expires = _("expires after %(limit)s without it")
        yield _limit(policy.pending_hours * 60, expires, _("waits for it until its end"))


def _unused(policy: Policy) -> Iterator[str]:
    if policy.no_show_minutes is not None:
        released = _("released after %(limit)s without a request")
        yield _limit(policy.no_show_minutes, released, _("never released for not being used"))
    if policy.late_cancel_minutes is not None:
        counts = _("counts when cancelled within %(limit)s of its start")
        yield _limit(policy.late_cancel_minutes, counts, _("may be cancelled at any time"))


def _limit(minutes: float, words: str, otherwise: str) -> str:
    """The limit in words; 0 is none."""
    return words % {"limit": length_words(minutes)} if minutes else otherwise
