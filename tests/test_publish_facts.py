"""What the route table is made of: bookings, servers, failures, tokens, presets; in few queries."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from bookings.models import State
from gateway import publish, tokens
from gateway.edge.table import LaneRoute, decode_lane, decode_presets, decode_shares, decode_tokens
from gateway.models import ApiToken
from lanes import clock
from lanes.models import Lane, Order, Phase, Preset, PresetFailure, PresetRevision, Runtime
from lanes.refusals import Refusal
from tests import builders
from tests.builders import at

pytestmark = pytest.mark.django_db
NOW = at(0)


def lane_part(lane: Lane, now: datetime = NOW) -> LaneRoute:
    return decode_lane(publish.encode_facts(now).parts[f"lane:{lane.slug}"])


def current(preset: Preset) -> PresetRevision:
    assert preset.current is not None
    return preset.current


def order(lane: Lane, preset: Preset | None, **fields: Any) -> Order:
    values = {"generation": 1, "ordered_at": NOW, "decided_at": NOW, "sentence": "test", **fields}
    target = current(preset) if preset else None
    return Order.objects.create(lane=lane, target=target, **values)


def runtime(lane: Lane, preset: Preset, **fields: Any) -> Runtime:
    values = {
        "generation": 1,
        "phase": Phase.READY,
        "phase_since": NOW,
        "started_at": NOW,
        "address": "127.0.0.1",
        "port": 18100,
        "sealed_key": "sealed",
        **fields,
    }
    return Runtime.objects.create(lane=lane, revision=current(preset), **values)


def token(owner: User, **fields: Any) -> ApiToken:
    values: dict[str, Any] = {"name": "n", "scopes": ["read"], "lanes": [], "expires_at": None}
    made = tokens.create_token(owner=owner, **{**values, **fields})
    assert not isinstance(made, Refusal)
    return made[0]


def test_a_confirmed_booking_is_a_grant_of_its_owner() -> None:
    booking = builders.booking(start=at(60), preset=builders.preset("qwen"))
    (grant,) = lane_part(booking.lane).grants
    assert (grant.booking_id, grant.owner_id) == (booking.pk, booking.owner_id)
    assert (grant.start, grant.end) == (at(60).timestamp(), at(120).timestamp())
    assert grant.preset == "qwen"


def test_a_whole_gpu_booking_names_no_preset() -> None:
    booking = builders.booking(kind="gpu")
    assert lane_part(booking.lane).grants[0].preset is None


def test_a_booking_confirmed_late_is_active_from_then() -> None:
    booking = builders.booking(start=at(-30), confirmed_at=at(-10))
    assert lane_part(booking.lane).grants[0].start == at(-10).timestamp()


@pytest.mark.parametrize("state", [each for each in State if each != State.CONFIRMED])
def test_a_booking_that_is_not_confirmed_grants_nothing(state: State) -> None:
    until = at(600) if state == State.HELD else None
    assert not lane_part(builders.booking(state=state, held_until=until).lane).grants


@pytest.mark.parametrize(
    ("start", "is_in"),
    [
        (at(-120), False),  # over for an hour; till then the clock may be set back
        (at(-120) + timedelta(milliseconds=1), True),
        (NOW + timedelta(days=7), False),
        (NOW + timedelta(days=7) - timedelta(milliseconds=1), True),
    ],
)
def test_the_table_holds_seven_days_and_the_last_hour(start: datetime, is_in: bool) -> None:
    assert bool(lane_part(builders.booking(start=start).lane).grants) is is_in


def test_a_lane_shows_its_order_its_server_and_its_estimate() -> None:
    lane, preset = builders.lane(enabled=False), builders.preset("qwen", aliases=["q"])
    order(lane, preset, is_fallback=True)
    runtime(lane, preset, phase=Phase.STARTING)
    part = lane_part(lane)
    assert (part.generation, part.phase, part.target, part.enabled) == (
        1,
        "starting",
        "qwen",
        False,
    )
    assert part.is_fallback
    assert part.eta is not None
    assert part.eta > NOW.timestamp() + 15


def test_a_server_that_has_ended_is_not_the_upstream() -> None:
    lane, preset = builders.lane(), builders.preset()
    order(lane, preset)
    runtime(lane, preset, ended_at=NOW)
    assert lane_part(lane).upstream is None
    runtime(lane, preset, generation=2, port=18101)
    upstream = lane_part(lane).upstream
    assert upstream is not None
    assert upstream.base_url.endswith(":18101")


def test_only_a_failure_of_the_target_in_force_is_told() -> None:
    lane, preset = builders.lane(), builders.preset()
    order(lane, preset)
    failure = PresetFailure.objects.create(
        lane=lane, revision=current(preset), count=1, failed_at=NOW, reason="out of memory"
    )
    other = current(builders.preset())
    PresetFailure.objects.create(lane=lane, revision=other, count=4, failed_at=NOW, reason="else")
    part = lane_part(lane)
    assert (part.failure, part.retry_at) == ("out of memory", NOW.timestamp() + 30)
    PresetFailure.objects.filter(pk=failure.pk).update(count=0)
    assert lane_part(lane).failure is None


def test_a_slug_wins_over_an_alias_of_the_same_name() -> None:
    builders.preset("a", aliases=["b", "c"])
    builders.preset("b", aliases=["c"])
    Preset.objects.create(slug="without-a-revision")
    names = decode_presets(publish.encode_facts(NOW).parts["presets"])
    assert names.pop("without-a-revision") == "without-a-revision"
    assert names == {"a": "a", "b": "b", "c": "a"}


def test_only_usable_tokens_are_in_the_table() -> None:
    now = clock.database_now()
    owner, lane = builders.person(), builders.lane("fast")
    good = token(owner, lanes=[lane], expires_at=now + timedelta(hours=1))
    tokens.revoke(token(owner), actor=owner)
    token(builders.person("gone"))
    User.objects.filter(username="gone").update(is_active=False)
    held = decode_tokens(publish.encode_facts(now).parts["tokens"])
    assert list(held) == [good.digest]
    entry = held[good.digest]
    assert (entry.token_id, entry.owner_id, entry.lanes) == (good.pk, owner.pk, ("fast",))
    assert (entry.scopes, entry.expires_at) == (("read",), (now + timedelta(hours=1)).timestamp())
    assert not decode_tokens(publish.encode_facts(now + timedelta(hours=1)).parts["tokens"])


def test_the_number_of_queries_does_not_grow(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(3):
        lane, preset = builders.lane(), builders.preset()
        order(lane, preset)
        runtime(lane, preset, context_length=4096)
        builders.booking(lane=lane, preset=preset)
        token(builders.person(f"member-{number}"), lanes=[lane])
    # Lanes with orders; servers; failures; bookings; load history; file sizes; presets; lanes of
    # tokens; tokens with limits; tokens of bookings; shares; servers that told of themselves; loads
    # of all pairs; maintenance.
    with django_assert_num_queries(14):
        publish.encode_facts(NOW)


def test_the_same_facts_give_the_same_parts() -> None:
    booking = builders.booking()
    order(booking.lane, booking.preset)
    later = NOW + timedelta(seconds=30)
    assert publish.encode_facts(NOW).parts == publish.encode_facts(later).parts


def test_those_with_whom_a_slot_is_shared_are_a_part_of_their_own() -> None:
    booking, guest = builders.booking(), builders.person("guest")
    before = publish.encode_facts(NOW)
    booking.shares.create(member=guest, added_at=NOW)
    parts = publish.encode_facts(NOW).parts
    assert decode_shares(parts["shares"]) == {booking.pk: frozenset({guest.pk})}
    changed = {name for name in parts if parts[name] != before.parts[name]}
    assert changed == {"shares"}  # so an edge of the release before reads what it always did
