"""What holds of `decide` whatever the facts are."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from bookings.closures import pieces
from bookings.planner import decide
from bookings.situation import (
    Choice,
    Claim,
    Closure,
    Decision,
    Failure,
    Margins,
    Report,
    Situation,
    Standing,
    Target,
)
from tests.builders import NOON
from tests.planner_facts import bare, obeyed

# Few values, close together, so that moments coincide and every rule comes up.
REVISIONS = {1: "a", 2: "b", 3: "d", 4: "a"}  # 4 is an edit of the preset of 1
PHASES = ["starting", "ready", "draining", "stopping", "stopped", "failed"]
ZONES = [UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kathmandu")]
moments = st.integers(-900, 900).map(lambda s: NOON + timedelta(seconds=s))
past = st.integers(0, 900).map(lambda s: NOON - timedelta(seconds=s))
targets = st.sampled_from(sorted(REVISIONS)).map(lambda r: Target(r, REVISIONS[r], 37.0 * r))
anything = st.one_of(st.none(), targets)
whatever_the_facts = settings(max_examples=250)


@st.composite
def claim_sets(draw: st.DrawFn) -> tuple[Claim, ...]:
    """Bookings that do not overlap, as the database promises; most around noon."""
    claims: list[Claim] = []
    start = NOON + timedelta(seconds=draw(st.integers(-1200, 900)))
    for number in range(1, draw(st.integers(0, 4)) + 1):
        end = start + timedelta(seconds=draw(st.sampled_from([1, 60, 300, 1000])))
        confirmed = min(NOON, start + timedelta(seconds=draw(st.sampled_from([-5000, 30]))))
        claims.append(Claim(number, 100 + number, start, end, confirmed, draw(anything)))
        start = end + timedelta(seconds=draw(st.sampled_from([0, 0, 1, 200, 400])))
    return tuple(draw(st.permutations(claims)))


@st.composite
def closure_sets(draw: st.DrawFn) -> tuple[Closure, ...]:
    """Mostly none; they may overlap bookings and each other."""
    if draw(st.integers(0, 2)):
        return ()
    starts = draw(st.lists(st.integers(-900, 900), min_size=1, max_size=3))
    lengths = st.sampled_from([None, 1, 60, 300, 1000])
    made = []
    for start in starts:
        begins, length = NOON + timedelta(seconds=start), draw(lengths)
        ends = None if length is None else begins + timedelta(seconds=length)
        if ends is None or ends > NOON:
            made.append(Closure(begins, ends))
    return tuple(made)


@st.composite
def orders(draw: st.DrawFn, claims: tuple[Claim, ...]) -> Standing | None:
    """Any order, mostly for a booking there is."""
    if draw(st.integers(0, 5)) == 0:
        return None
    rule = draw(st.integers(0, 5))
    claim = draw(st.sampled_from(claims)) if claims and rule in (1, 2, 3) else None
    moved = timedelta(seconds=draw(st.sampled_from([0, 0, 0, 60])))
    return Standing(
        target=draw(anything),
        generation=7,
        ordered_at=draw(past),
        rule=rule,
        booking_id=claim.booking_id if claim else None,
        owner_id=claim.owner_id if claim and rule == 1 else None,
        is_fallback=claim is not None and draw(st.booleans()),
        booking_start=claim.start + moved if claim else None,
        booking_preset=claim.target.preset if claim and claim.target else "",
    )


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """Any facts of a lane at noon."""
    claims = draw(claim_sets())
    failures = st.builds(Failure, st.sampled_from([1, 2, 3]), st.integers(1, 7), past)
    return Situation(
        lane="alpha",
        is_enabled=draw(st.integers(0, 9)) > 0,
        claims=claims,
        choice=draw(st.one_of(st.none(), st.builds(Choice, anything, past, moments))),
        default=draw(anything),
        order=draw(orders(claims)),
        report=draw(
            st.one_of(
                st.none(),
                st.builds(
                    Report,
                    st.sampled_from([6, 7]),
                    st.sampled_from([1, 2, 3]),
                    st.sampled_from(PHASES),
                    past,
                ),
            )
        ),
        failures=tuple(draw(st.lists(failures, max_size=3, unique_by=lambda f: f.revision_id))),
        margins=draw(st.sampled_from([Margins(), Margins(0, 1, 0), Margins(30, 90, 240)])),
        zone=draw(st.sampled_from(ZONES)),
        closures=draw(closure_sets()),
    )


@whatever_the_facts
@given(situations(), st.permutations(range(8)))
def test_the_order_of_facts_changes_nothing(situation: Situation, places: list[int]) -> None:
    claims, failures = dict(enumerate(situation.claims)), dict(enumerate(situation.failures))
    shuffled = replace(
        situation,
        claims=tuple(claims[place] for place in places if place in claims),
        failures=tuple(failures[place] for place in places if place in failures),
    )
    assert decide(shuffled, NOON) == decide(situation, NOON)


@whatever_the_facts
@given(situations())
def test_a_decision_carried_out_orders_nothing_more(situation: Situation) -> None:
    first = decide(situation, NOON)
    carried_out = obeyed(situation, first, NOON)
    second = decide(carried_out, NOON)
    assert (second.target, second.is_fallback) == (first.target, first.is_fallback)
    assert (second.rule, second.booking_id) == (first.rule, first.booking_id)
    assert obeyed(carried_out, second, NOON).order == carried_out.order


@whatever_the_facts
@given(situations(), st.floats(0, 1))
def test_until_it_is_reconsidered_the_decision_does_not_change(
    situation: Situation, fraction: float
) -> None:
    decision = decide(situation, NOON)
    for facts in (situation, obeyed(situation, decision, NOON)):
        expected = bare(decide(facts, NOON))
        for moment in _before(decision, fraction):
            assert bare(decide(facts, moment)) == expected


def _before(decision: Decision, fraction: float) -> list[datetime]:
    """Moments at which the decision still holds, up to the last microsecond."""
    if decision.reconsider_at is None:
        return [NOON + timedelta(days=fraction * 900)]
    last = decision.reconsider_at - timedelta(microseconds=1)
    return [min(NOON + (last - NOON) * fraction, last), last]


@whatever_the_facts
@given(situations())
def test_at_the_moment_it_names_the_answer_does_change(situation: Situation) -> None:
    decision = decide(situation, NOON)
    if decision.reconsider_at is None:
        return
    assert decision.reconsider_at > NOON
    assert any(
        bare(decide(facts, decision.reconsider_at)) != bare(decide(facts, NOON))
        for facts in (situation, obeyed(situation, decision, NOON))
    )


def _open_claims(situation: Situation) -> list[Claim]:
    found = pieces(situation.claims, situation.closures)
    return [claim for claim in found if claim.end > claim.active_from]


@whatever_the_facts
@given(situations())
def test_in_maintenance_nothing_runs_for_anybody(situation: Situation) -> None:
    decision = decide(situation, NOON)
    if any(c.start <= NOON and (c.end is None or c.end > NOON) for c in situation.closures):
        assert (decision.rule, decision.target, decision.owner_id) == (0, None, None)


@whatever_the_facts
@given(situations())
def test_no_booking_is_served_that_maintenance_cuts_off(situation: Situation) -> None:
    decision = decide(situation, NOON)
    if decision.booking_id is not None:
        assert decision.booking_id in {claim.booking_id for claim in _open_claims(situation)}


@whatever_the_facts
@given(situations())
def test_nobodys_booking_is_decided_for_another(situation: Situation) -> None:
    decision = decide(situation, NOON)
    running = [c for c in _open_claims(situation) if c.active_from <= NOON < c.end]
    if not situation.is_enabled or not running:
        assert decision.owner_id is None
        return
    claim = running[0]
    assert (decision.rule, decision.booking_id) == (1, claim.booking_id)
    assert decision.owner_id == claim.owner_id
    assert decision.target == (situation.default if decision.is_fallback else claim.target)


@whatever_the_facts
@given(situations())
def test_between_slots_only_the_next_one_is_served(situation: Situation) -> None:
    decision = decide(situation, NOON)
    coming = [c for c in _open_claims(situation) if c.active_from > NOON]
    following = min(coming, key=lambda c: c.active_from, default=None)
    if decision.rule in (2, 3) and decision.booking_id is not None:
        assert following is not None
        assert decision.booking_id == following.booking_id
        assert decision.target == (situation.default if decision.is_fallback else following.target)


@whatever_the_facts
@given(situations())
def test_a_fallback_is_another_preset_that_does_not_fail(situation: Situation) -> None:
    decision = decide(situation, NOON)
    if decision.is_fallback:
        assert decision.rule in (1, 2, 3)
        assert decision.target is not None
        assert decision.target == situation.default
        assert decision.target.preset != decision.booking_preset
        assert decision.target.revision_id not in {f.revision_id for f in situation.failures}


@whatever_the_facts
@given(situations())
def test_a_fallback_on_its_way_is_never_ended_by_a_retry(situation: Situation) -> None:
    order, default = situation.order, situation.default
    on_its_way = (
        order is not None
        and order.is_fallback
        and order.target == default
        and (situation.report is None or situation.report.phase not in ("ready", "failed"))
    )
    if not on_its_way or default is None or situation.failures == ():
        return
    decision = decide(situation, NOON)
    is_retry = decision.target is not None and decision.target.revision_id in {
        failure.revision_id for failure in situation.failures
    }
    is_default_out = default.preset == decision.booking_preset or default.revision_id in {
        failure.revision_id for failure in situation.failures
    }
    assert not (is_retry and decision.booking_id and not is_default_out)


@whatever_the_facts
@given(situations())
def test_every_sentence_is_one_and_fits(situation: Situation) -> None:
    sentence = decide(situation, NOON).sentence
    assert 10 < len(sentence) < 500
    assert "None" not in sentence
