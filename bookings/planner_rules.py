"""Which rule applies to a lane, and what it wants there. Pure; DESIGN: "The decision"."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bookings.closures import coming, empty_from, in_force, pieces
from bookings.situation import Choice, Claim, Closure, Margins, Situation, Standing, Target


@dataclass(frozen=True, slots=True)
class Ruling:
    """The first rule that applies, and what it wants, before any fallback."""

    rule: int
    wanted: Target | None
    claim: Claim | None = None  # the booking that rules 1 to 3 are about
    upcoming: Claim | None = None  # for rules 4 and 5: the next booking, which will end them
    choice: Choice | None = None  # rule 4
    skipped: Target | None = None  # what rule 4 or 5 would load, had it the time before `claim`
    closure: Closure | None = None  # rule 0: the maintenance; without one the lane is disabled

    @property
    def is_hold(self) -> bool:
        """Rule 3 before a whole-GPU booking: what is loaded stays, for nobody in particular."""
        return self.rule == 3 and self.claim is not None and self.claim.target is None

    @property
    def served(self) -> Claim | None:
        """The booking whose target is wanted, if this is for one."""
        return None if self.is_hold else self.claim


def applicable(situation: Situation, now: datetime) -> Ruling:
    """The first of rules 0 to 5 that applies."""
    if not situation.is_enabled:
        return Ruling(0, None)
    closure = in_force(situation.closures, now)
    if closure is not None:
        return Ruling(0, None, closure=closure)
    claims = live_claims(situation, now)
    if claims and claims[0].active_from <= now:
        return Ruling(1, claims[0].target, claims[0])
    return _between(situation, claims[0] if claims else None, now)


def _between(situation: Situation, upcoming: Claim | None, now: datetime) -> Ruling:
    """While no slot is in progress. Nothing is loaded ahead of a slot that maintenance precedes."""
    closure = coming(situation.closures, now)
    is_closed_first = closure is not None and (
        upcoming is None or closure.start <= upcoming.active_from
    )
    if closure is not None and is_closed_first and now >= empty_from(closure, situation.margins):
        return Ruling(0, None, closure=closure)
    choice = choice_in_force(situation, now)
    idle = choice.target if choice is not None else situation.default
    if upcoming is not None and not is_closed_first:
        early = _before_booking(situation, upcoming, idle, now)
        if early is not None:
            return early
    return Ruling(4 if choice is not None else 5, idle, upcoming=upcoming, choice=choice)


def live_claims(situation: Situation, now: datetime) -> list[Claim]:
    """The bookings in progress and to come, in order of time, as far as maintenance leaves them."""
    open_claims = pieces(situation.claims, situation.closures)
    live = [c for c in open_claims if c.end > now and c.end > c.active_from]
    return sorted(live, key=lambda c: (c.active_from, c.booking_id))


def choice_in_force(situation: Situation, now: datetime) -> Choice | None:
    """The administrator's choice, unless its time is up or a booking began after it was made."""
    choice = situation.choice
    if choice is None or now >= choice.until:
        return None
    began = (c.active_from for c in situation.claims if c.end > c.active_from)
    return None if any(choice.made_at < start <= now for start in began) else choice


def preload_from(claim: Claim, margins: Margins) -> datetime:
    """From when rule 2 applies before this booking."""
    if claim.target is None:
        return claim.active_from - timedelta(seconds=margins.stop + margins.buffer)
    lead = max(claim.target.load_seconds + margins.buffer, margins.least_preload)
    return claim.active_from - timedelta(seconds=lead)


def worthwhile_until(idle: Target, claim: Claim, margins: Margins) -> datetime:
    """Until when, inclusive, there is time to load `idle` before this booking: rule 3's gap."""
    following = margins.stop if claim.target is None else claim.target.load_seconds
    gap = idle.load_seconds + following + 2 * margins.buffer
    return claim.active_from - timedelta(seconds=gap)


def _before_booking(
    situation: Situation, claim: Claim, idle: Target | None, now: datetime
) -> Ruling | None:
    """Rules 2 and 3, and the commitment that keeps what they ordered."""
    order, margins = situation.order, situation.margins
    if now >= preload_from(claim, margins):
        return Ruling(2, claim.target, claim)
    is_too_late = (
        idle is not None
        and not _is_loaded(idle, order)
        and now > worthwhile_until(idle, claim, margins)
    )
    skipped = idle if is_too_late else None
    if order is not None and is_committed(order, claim):
        return Ruling(order.rule, claim.target, claim, skipped=skipped if order.rule == 3 else None)
    if skipped is None:
        return None
    if claim.target is None:
        return Ruling(3, order.target if order is not None else None, claim, skipped=skipped)
    return Ruling(3, claim.target, claim, skipped=skipped)


def is_committed(order: Standing, claim: Claim) -> bool:
    """Whether a preset was ordered by rule 2 or 3 for this booking, which has neither moved nor
    changed its preset since. The estimates do not matter, nor what runs in fallback."""
    return (
        order.rule in (2, 3)
        and claim.target is not None
        and order.booking_id == claim.booking_id
        and order.booking_start == claim.start
        and order.booking_preset == claim.target.preset
    )


def _is_loaded(target: Target, order: Standing | None) -> bool:
    """Loaded means ordered: a server that is still starting counts."""
    return (
        order is not None
        and order.target is not None
        and order.target.revision_id == target.revision_id
    )
