"""Routing whatever the table: only the owner and guests are ever routed into a slot."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.endings import Running, ending
from gateway.edge.refusals import STATUSES, EdgeRefusal
from gateway.edge.routing import Asked, Caller, Route, choose
from gateway.edge.table import Grant, LaneRoute, SharedGrant, Table, TokenEntry, Upstream

OWNERS = st.integers(1, 3)
NAMES = st.sampled_from(["a", "b", "c", "alias", "nope", "auto", "", None])
TIMES = st.integers(0, 100).map(float)
PRESET = st.sampled_from(["a", "b", None])
PHASES = st.sampled_from(["stopped", "starting", "ready", "draining", "stopping", "failed"])


@st.composite
def grant_of(draw: st.DrawFn, number: int, start: float, end: float) -> Grant:
    """A booking, shared or not."""
    given = (number, draw(OWNERS), start, end, draw(PRESET))
    guests = draw(st.none() | st.frozensets(OWNERS))
    return Grant(*given) if guests is None else SharedGrant(*given, guest_ids=guests)


@st.composite
def grants(draw: st.DrawFn) -> tuple[Grant, ...]:
    """Bookings that do not overlap, in any order."""
    edges = sorted(draw(st.sets(st.integers(0, 100), max_size=8)))
    pairs = zip(edges[::2], edges[1::2], strict=False)
    made = [
        draw(grant_of(number, float(start), float(end)))
        for number, (start, end) in enumerate(pairs)
    ]
    return tuple(draw(st.permutations(made)))


@st.composite
def lanes(draw: st.DrawFn, slug: str) -> LaneRoute:
    preset = draw(st.sampled_from(["a", "b"]))
    upstream = Upstream(1, preset, (preset, "alias"), "http://127.0.0.1:1", "sealed")
    return LaneRoute(
        slug=slug,
        enabled=draw(st.booleans()),
        generation=draw(st.integers(1, 2)),
        phase=draw(PHASES),
        upstream=draw(st.sampled_from([upstream, None])),
        draining=draw(st.booleans()),
        drain_until=draw(st.none() | TIMES),
        cut=draw(st.booleans()),
        target=draw(PRESET),
        eta=draw(st.none() | TIMES),
        is_fallback=draw(st.booleans()),
        failure=draw(st.sampled_from([None, "out of memory"])),
        retry_at=draw(st.none() | TIMES),
        grants=draw(grants()),
    )


@st.composite
def tables(draw: st.DrawFn) -> Table:
    made = [draw(lanes(slug)) for slug in ("one", "two")[: draw(st.integers(0, 2))]]
    tokens = {
        f"digest-{owner}": TokenEntry(
            owner,
            owner,
            draw(st.sampled_from([("inference",), ("admin",), ("read",)])),
            draw(st.sampled_from([(), ("one",), ("gone",)])),
            draw(st.none() | TIMES),
        )
        for owner in (1, 2, 3)
    }
    presets = {name: name for name in ("a", "b", "c")} | {"alias": "a"}
    held = {lane.slug: lane for lane in made}
    return Table(1, draw(st.sampled_from([-1000.0, 0.0, 100.0])), tokens, held, presets)


ASKED = st.builds(Asked, NAMES, st.sampled_from([None, "one", "two", "gone"]))
CALLERS = st.sampled_from([None, "digest-1", "digest-2", "digest-3", "x"]).map(Caller)


@given(tables(), CALLERS, ASKED, TIMES)
def test_only_the_owner_and_guests_are_routed_into_a_slot(
    table: Table, caller: Caller, asked: Asked, now: float
) -> None:
    route = choose(table, caller, asked, now)
    if isinstance(route, Route):
        active = [one for one in route.lane.grants if one.start <= now < one.end]
        assert all(route.token.owner_id in one.people for one in active)
        assert all(one.preset is not None for one in active)
        assert route.token == table.tokens[caller.digest or ""]


@given(tables(), CALLERS, ASKED, TIMES)
def test_a_route_is_a_ready_server_that_was_asked_for(
    table: Table, caller: Caller, asked: Asked, now: float
) -> None:
    route = choose(table, caller, asked, now)
    if isinstance(route, Route):
        assert route.lane.upstream == route.upstream
        assert route.lane.phase == "ready"
        assert not route.lane.draining
        assert asked.lane in (None, route.lane.slug)
        booked = route.grant.preset if route.grant and route.fallback else None
        names = {*route.upstream.names, None, "", "auto", booked}
        assert asked.model in names or table.presets[asked.model or ""] in names


@given(tables(), CALLERS, ASKED, TIMES)
def test_every_refusal_has_its_status_and_its_wait(
    table: Table, caller: Caller, asked: Asked, now: float
) -> None:
    refusal = choose(table, caller, asked, now)
    if isinstance(refusal, EdgeRefusal):
        assert refusal.status == STATUSES[refusal.code]
        assert (refusal.retry_after is not None) == (refusal.status in {403, 429, 503})
        assert refusal.retry_after is None or refusal.retry_after >= 1


@given(tables(), CALLERS, TIMES)
def test_a_stale_table_serves_only_into_the_callers_own_slot(
    table: Table, caller: Caller, now: float
) -> None:
    route = choose(table, caller, Asked(), now, max_age=-1.0 - table.confirmed_at + now)
    assert not isinstance(route, Route) or route.grant is not None


@given(tables(), OWNERS, TIMES, TIMES)
def test_a_request_never_runs_on_in_anothers_slot_longer_than_the_drain(
    table: Table, owner: int, now: float, drain: float
) -> None:
    for lane in table.lanes.values():
        if lane.upstream is None:
            continue
        found = ending(lane, Running(owner, lane.upstream), now, drain)
        for grant in lane.grants:
            if owner not in grant.people and grant.end > max(now, grant.start + drain):
                assert found is not None
                assert found.at <= max(now, grant.start + drain)


@given(tables(), OWNERS, TIMES)
def test_nothing_ends_a_request_on_its_own_quiet_lane(table: Table, owner: int, now: float) -> None:
    for lane in table.lanes.values():
        is_quiet = not lane.draining and not (lane.cut and lane.generation > 1)
        others = [one for one in lane.grants if owner not in one.people and one.end > now]
        if is_quiet and not others and lane.upstream is not None:
            assert ending(lane, Running(owner, lane.upstream), now, 30.0) is None
