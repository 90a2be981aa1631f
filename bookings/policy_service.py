"""Writing rules down: what administrators make, change and delete."""

from collections.abc import Iterable
from typing import TypedDict, Unpack

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from bookings.models import Policy
from bookings.policy_rows import ApprovalChoice, PresetChoice
from lanes import audit
from lanes.locking import lock_lanes, one_edit_at_a_time
from lanes.models import Lane, Preset, Subject
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from wire.words import Words, said

MOST_DAYS = 366  # as far as anybody may book at all
MOST = {
    **dict.fromkeys(("grid_minutes", "late_cancel_minutes", "no_show_minutes"), 1440),
    **dict.fromkeys(("min_minutes", "max_minutes", "notice_minutes"), MOST_DAYS * 1440),
    **dict.fromkeys(("approval_hours", "pending_hours"), MOST_DAYS * 24),
    "ahead_days": MOST_DAYS,
    "day_hours": 25,
    "week_hours": 170,  # with a night of 25 hours, or two
    "bookings_ahead": 1000,
}

SAYING = (*MOST, "may_book", "may_book_gpu", "preset_choice", "approval")  # for whom is no rule


class PolicyWish(TypedDict, total=False):
    """What a row may say; None says nothing. What is left out stays, or says nothing."""

    lane: Lane | None
    group: Group | None
    may_book: bool | None
    may_book_gpu: bool | None
    preset_choice: str | None
    presets: Iterable[Preset]
    grid_minutes: int | None
    min_minutes: int | None
    max_minutes: int | None
    notice_minutes: int | None
    ahead_days: int | None
    day_hours: float | None
    week_hours: float | None
    bookings_ahead: int | None
    approval: str | None
    approval_hours: float | None
    pending_hours: float | None
    no_show_minutes: int | None
    late_cancel_minutes: int | None


def save_policy(
    policy: Policy | None, *, actor: User, **wish: Unpack[PolicyWish]
) -> Policy | Refusal:
    """Make a row of rules (None) or change one.

    Refusals: not_administrator, not_found (it, or a lane, group or preset that it names), exists
    (there is one for this lane and group), invalid, says_nothing.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    try:
        with transaction.atomic():
            return _saved(policy, actor, wish)
    except IntegrityError:  # another made it at the same moment
        return _exists()


def _saved(policy: Policy | None, actor: User, wish: PolicyWish) -> Policy | Refusal:
    """Lock what it names, then check, then write."""
    one_edit_at_a_time()
    refusal = _gone(wish)
    if refusal:
        return refusal
    kept = Policy.objects.select_for_update(no_key=True, of=("self",))
    row = kept.filter(pk=policy.pk).first() if policy else Policy()
    if row is None:
        return Refusal("not_found", _("These rules have been deleted meanwhile."))
    before = audit.facts_of(row, Subject.POLICY) if policy else audit.NOTHING
    presets = list(wish["presets"]) if "presets" in wish else None
    _take_over(row, wish)
    refusal = _existing(row) or _nonsense(row) or _silence(row)
    if refusal:
        return refusal
    row.save()
    if row.preset_choice != PresetChoice.LISTED:
        row.presets.clear()
    elif presets is not None:
        row.presets.set(presets)
    kind, after = "policy.changed" if policy else "policy.made", audit.facts_of(row, Subject.POLICY)
    audit.note(kind, actor, _about(row), before=before, after=after)
    return row


@transaction.atomic
def delete_policy(policy: Policy, *, actor: User) -> Refusal | None:
    """What it says holds no more."""
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    about, before = _about(policy), audit.facts_of(policy, Subject.POLICY)
    if Policy.objects.filter(pk=policy.pk).delete()[0]:
        audit.note("policy.deleted", actor, about, before=before)
    return None


def _gone(wish: PolicyWish) -> Refusal | None:
    """What it names that has been deleted; what has not is locked, so that it stays."""
    lane, group, presets = wish.get("lane"), wish.get("group"), list(wish.get("presets") or ())
    if lane and not lock_lanes([lane.pk]):
        return Refusal("not_found", _("This lane has been deleted meanwhile."))
    if group and not list(Group.objects.select_for_update(no_key=True).filter(pk=group.pk)):
        return Refusal("not_found", _("This group has been deleted meanwhile."))
    pks = {preset.pk for preset in presets}
    there = Preset.objects.select_for_update(no_key=True, of=("self",)).filter(pk__in=pks)
    if len(there) < len(pks):
        return Refusal("not_found", _("One of these presets has been deleted meanwhile."))
    return None


def _about(row: Policy) -> audit.About:
    return audit.About(Subject.POLICY, row.pk, _name(row))


def _name(row: Policy) -> Words:
    lane, group = row.lane.name if row.lane else "", row.group.name if row.group else ""
    if row.lane and row.group:
        return said("the rules of {lane} for {group}", lane=lane, group=group)
    if row.lane:
        return said("the rules of {lane}", lane=lane)
    if row.group:
        return said("the rules for {group}", group=group)
    return said("the rules for everybody")


def _take_over(row: Policy, wish: PolicyWish) -> None:
    for name, value in wish.items():
        if name in {"preset_choice", "approval"}:
            setattr(row, name, value or "")
        elif name != "presets":
            setattr(row, name, value)
    if row.approval != ApprovalChoice.BEYOND:
        row.approval_hours = None


def _existing(row: Policy) -> Refusal | None:
    others = Policy.objects.filter(lane=row.lane, group=row.group).exclude(pk=row.pk)
    return _exists() if others.exists() else None


def _exists() -> Refusal:
    words = _("There are rules for this lane and this group already: change those.")
    return Refusal("exists", words)


def _nonsense(row: Policy) -> Refusal | None:
    """Numbers that no rule can have."""
    for name, most in MOST.items():
        value = getattr(row, name)
        if value is not None and not 0 <= value <= most:
            words = _("%(field)s: a number from 0 to %(most)s, or nothing.")
            return _invalid(words % {"field": name, "most": most})
    if row.grid_minutes and 1440 % row.grid_minutes:
        return _invalid(_("grid_minutes: a divisor of a day, such as 5, 10, 15, 20, 30 or 60."))
    if row.min_minutes and row.max_minutes and row.min_minutes > row.max_minutes:
        return _invalid(_("min_minutes is more than max_minutes: no slot would be right."))
    if row.approval == ApprovalChoice.BEYOND and not row.approval_hours:
        return _invalid(_("approval_hours: beyond how many hours an administrator must approve."))
    return None


def _silence(row: Policy) -> Refusal | None:
    """A row that says nothing would only be in the way of one that does."""
    if any(getattr(row, name) not in {None, ""} for name in SAYING):
        return None
    return Refusal(
        "says_nothing",
        _("These rules say nothing: fill in at least one of the fields, or delete them."),
    )


def _invalid(words: str) -> Refusal:
    return Refusal("invalid", words)
