"""Maintenance: who may plan, change and end it, what it does to bookings, and who is told."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from rest_framework.test import APIClient

from bookings import maintenance, services
from bookings.explaining import explain
from bookings.models import Booking
from bookings.planning import plan_lanes
from bookings.refusals import UnderMaintenance
from gateway import publish
from gateway.edge.table import decode_maintenance
from lanes import clock
from lanes.maintenance import not_over, within
from lanes.models import Lane, LaneEvent, Maintenance, Notice, Order
from lanes.refusals import Refusal
from notices.closing import closing_news, times_of
from notices.maintenance import bookings_concerned, tell_maintenance
from tests import builders

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
URL = "/api/v1/maintenance/"
PAGE = "/administration/maintenance/"


def now() -> datetime:
    return clock.database_now()


def planned(*lanes: Lane, start: float | None = 1, end: float | None = 3, **said: Any) -> Any:
    """Maintenance in so many hours, by an administrator."""
    said.setdefault("actor", builders.administrator())
    begins = None if start is None else now() + start * HOUR
    ends = None if end is None else now() + end * HOUR
    return maintenance.plan(lanes, start=begins, end=ends, **said)


def one(*args: Any, **said: Any) -> Maintenance:
    (made,) = planned(*args, **said)
    assert isinstance(made, Maintenance)
    return made


def book(lane: Lane, start: float, end: float, **said: Any) -> Booking | Refusal:
    said.setdefault("owner", builders.person())
    begins, ends = now() + start * HOUR, now() + end * HOUR
    return services.book(lane=lane, kind="gpu", preset=None, start=begins, end=ends, **said)


def code(answer: object) -> str:
    return answer.code if isinstance(answer, Refusal) else "done"


def test_it_is_planned_for_several_lanes_with_a_sentence_each() -> None:
    lanes = [builders.lane(), builders.lane()]
    made = planned(*lanes, reason=" new fans ")
    assert [(row.lane, row.reason) for row in made] == [(lane, "new fans") for lane in lanes]
    events = LaneEvent.objects.filter(kind="maintenance")
    assert events.count() == 2
    assert all("(new fans)" in event.told for event in events)


def test_without_times_it_begins_now_and_lasts_until_it_is_ended() -> None:
    row = one(builders.lane(), start=None, end=None)
    assert row.is_in_force(now())
    assert maintenance.end(row, actor=builders.administrator()) is None
    row.refresh_from_db()
    assert not row.is_in_force(now())
    assert not not_over(now()).exists()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"actor": "member"}, "not_administrator"),
        ({"end": -1}, "in_the_past"),
        ({"start": -1}, "in_the_past"),
        ({"start": 3, "end": 2}, "ends_before_start"),
        ({"reason": "x" * 201}, "bad_reason"),
        ({"reason": "\0"}, "bad_reason"),
    ],
)
def test_what_cannot_be_planned_is_refused(said: dict[str, Any], expected: str) -> None:
    if "actor" in said:
        said = {"actor": builders.person("member")}
    assert code(planned(builders.lane(), **said)) == expected
    assert not Maintenance.objects.exists()


def test_it_needs_a_lane_that_is_still_there() -> None:
    assert code(planned()) == "no_lane"
    gone = builders.lane()
    Lane.objects.filter(pk=gone.pk).delete()
    assert code(planned(gone)) == "not_found"


def test_times_need_a_zone() -> None:
    naive = datetime(2030, 1, 15, 14)  # noqa: DTZ001
    answer = maintenance.plan(
        [builders.lane()], start=naive, end=None, actor=builders.administrator()
    )
    assert code(answer) == "naive_time"


def test_its_end_is_changed_and_what_is_over_is_left_alone() -> None:
    row, administrator = one(builders.lane()), builders.administrator()
    later = now() + 5 * HOUR
    changed = maintenance.change(row, end=later, reason="more", actor=administrator)
    assert isinstance(changed, Maintenance)
    assert (changed.end, changed.reason) == (later, "more")
    opened = maintenance.change(row, end=None, actor=administrator)
    assert isinstance(opened, Maintenance)
    assert (opened.end, opened.reason) == (None, "more")
    for end, expected in ((now() - HOUR, "in_the_past"), (now() + HOUR / 2, "ends_before_start")):
        assert code(maintenance.change(row, end=end, actor=administrator)) == expected
    member = builders.person("member")
    assert code(maintenance.change(row, end=later, actor=member)) == "not_administrator"
    assert code(maintenance.end(row, actor=member)) == "not_administrator"
    assert maintenance.end(row, actor=administrator) is None
    assert code(maintenance.end(row, actor=administrator)) == "wrong_state"
    assert code(maintenance.change(row, end=later, actor=administrator)) == "wrong_state"


def test_the_database_refuses_an_end_before_the_start() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Maintenance.objects.create(lane=builders.lane(), start=now(), end=now() - HOUR)


def test_what_was_called_off_closed_nothing() -> None:
    lane = builders.lane()
    row = one(lane)
    span = (now(), now() + 10 * HOUR, [lane.pk])
    assert [*within(*span)] == [row]
    maintenance.end(row, actor=builders.administrator())
    assert [*within(*span)] == []


def test_bookings_stay_and_nothing_runs_for_them() -> None:
    lane, preset = builders.lane(), builders.preset("small")
    booking = builders.booking(lane=lane, preset=preset, start=now() - HOUR, end=now() + 4 * HOUR)
    row = one(lane, start=None, end=2, reason="new fans")
    plan_lanes()
    order = Order.objects.get(lane=lane)
    assert (order.rule, order.target) == (0, None)
    assert "maintenance until" in order.told
    assert "new fans" in explain(lane, now())
    maintenance.end(row, actor=builders.administrator())
    plan_lanes()
    order.refresh_from_db()
    assert (order.rule, order.target, order.booking_id_for) == (1, preset.current, booking.pk)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0.5, 0.99, "done"), (0.5, 1.1, "maintenance"), (1.5, 2, "maintenance"), (3.1, 4, "done")],
)
def test_members_cannot_book_into_it(start: float, end: float, expected: str) -> None:
    lane = builders.lane()
    one(lane, reason="new fans")
    assert code(book(lane, start, end)) == expected


def test_the_refusal_names_it_and_what_is_free_around_it() -> None:
    lane = builders.lane()
    row = one(lane, reason="new fans")
    refusal = book(lane, 1.5, 2)
    assert isinstance(refusal, UnderMaintenance)
    assert [(each.start, each.end) for each in refusal.conflicts] == [(row.start, row.end)]
    assert "new fans" in refusal.words
    assert row.end is not None
    assert refusal.nearest
    assert all(s.end <= row.start or s.start >= row.end for s in refusal.nearest)


def test_one_without_an_end_leaves_only_what_is_before_it() -> None:
    lane = builders.lane()
    row = one(lane, end=None)
    refusal = book(lane, 2, 2.5)
    assert isinstance(refusal, UnderMaintenance)
    assert all(slot.end <= row.start for slot in refusal.nearest)


def test_administrators_can_book_into_it() -> None:
    lane = builders.lane()
    one(lane)
    assert code(book(lane, 1.5, 2, owner=builders.administrator())) == "done"


def test_a_booking_cannot_be_moved_into_it_but_made_shorter() -> None:
    lane, owner = builders.lane(), builders.person()
    made = book(lane, 0.5, 2)
    assert isinstance(made, Booking)
    row = one(lane)
    start, later = made.start, made.end + HOUR / 4
    assert code(services.move(made, actor=owner, start=start, end=later)) == "maintenance"
    assert code(services.extend(made, actor=owner, end=later)) == "maintenance"
    assert code(services.move(made, actor=owner, start=start, end=row.start)) == "done"


def test_the_route_table_carries_it() -> None:
    lane = builders.lane("here")
    row = one(lane, reason="new fans")
    part = publish.encode_facts(now()).parts["maintenance"]
    (closure,) = decode_maintenance(part)["here"]
    assert row.end is not None
    assert (closure.start, closure.end) == (row.start.timestamp(), row.end.timestamp())
    maintenance.end(row, actor=builders.administrator())
    assert decode_maintenance(publish.encode_facts(now()).parts["maintenance"]) == {}


# --- Who is told
A, B = "20300115T130000-20300115T150000", "20300115T130000-"


@pytest.mark.parametrize(
    ("times", "before", "expected"),
    [
        (None, [], None),
        (A, [], ("planned", f"0.{A}")),
        (A, [f"0.{A}"], None),
        (B, [f"0.{A}"], ("changed", f"1.{B}")),
        (A, [f"0.{A}", f"1.{B}"], ("changed", f"2.{A}")),
        (None, [f"0.{A}"], ("over", "1.over")),
        (None, [f"0.{A}", "1.over"], None),
        (A, [f"0.{A}", "1.over"], ("planned", f"2.{A}")),
    ],
)
def test_what_is_news(times: str | None, before: list[str], expected: Any) -> None:
    found = closing_news(times, before)
    assert (found and (found.event, found.mark)) == expected


def test_times_are_written_in_utc() -> None:
    assert times_of(builders.at(60), builders.at(180)) == A
    assert times_of(builders.at(60), None) == B


def told() -> list[str]:
    tell_maintenance(now())
    notices = Notice.objects.filter(kind="maintenance", recipient__username="owner")
    return [each.told_sentence for each in notices.order_by("pk")]


def test_holders_are_told_of_each_change_once() -> None:
    lane, administrator = builders.lane("here"), builders.administrator()
    assert code(book(lane, 2, 4)) == "done"
    assert code(book(lane, 5, 6, owner=builders.person("stranger"))) == "done"
    row = one(lane, reason="new fans")
    assert [len(told()), len(told())] == [1, 1]
    maintenance.change(row, end=now() + 3.5 * HOUR, actor=administrator)
    assert [len(told()), len(told())] == [2, 2]
    maintenance.end(row, actor=administrator)
    sentences = [told(), told()][1]
    assert len(sentences) == 3
    assert "is under maintenance" in sentences[0]
    assert "new fans" in sentences[0]
    assert "is now" in sentences[1]
    assert "any more" in sentences[2]
    assert not Notice.objects.filter(recipient__username="stranger").exists()


def test_of_all_that_is_booked_what_it_touches_or_did_is_looked_at() -> None:
    lane = builders.lane()
    for hour in range(2, 6):
        assert code(book(lane, hour, hour + 1)) == "done"
    builders.booking(lane=builders.lane("other"), start=now() + HOUR)
    row, first = one(lane, end=2.5), Booking.objects.filter(lane=lane).earliest("start")
    assert list(bookings_concerned({lane.pk}, now())) == [first]
    assert len(told()) == 1
    maintenance.end(row, actor=builders.administrator())
    assert list(bookings_concerned({lane.pk}, now())) == [first]


def test_holders_are_told_when_it_leaves_their_slot_alone() -> None:
    lane = builders.lane()
    assert code(book(lane, 2, 4)) == "done"
    row = one(lane)
    assert len(told()) == 1
    maintenance.change(row, end=now() + 1.5 * HOUR, actor=builders.administrator())
    assert "any more" in told()[1]


# --- REST
@pytest.fixture
def administrator() -> APIClient:
    client = APIClient()
    client.force_login(builders.administrator())
    return client


@pytest.fixture
def member() -> APIClient:
    client = APIClient()
    client.force_login(builders.person("member"))
    return client


def hours(count: float) -> str:
    return (now() + count * HOUR).isoformat()


def test_rest_plans_changes_and_ends_it(administrator: APIClient, member: APIClient) -> None:
    builders.lane("here")
    body = {"lanes": ["here"], "start": hours(1), "end": hours(2), "reason": "new fans"}
    made = administrator.post(URL, body, format="json")
    assert made.status_code == 201, made.content
    (row,) = made.json()
    assert (row["lane"], row["reason"]) == ("here", "new fans")
    listed = member.get(URL).json()
    assert [each["id"] for each in listed["results"]] == [row["id"]]
    place = f"{URL}{row['id']}/"
    assert administrator.patch(place, {"end": None}, format="json").json()["end"] is None
    assert administrator.post(f"{place}end/").status_code == 204
    assert administrator.get(place).status_code == 404


def test_rest_closes_a_whole_host(administrator: APIClient) -> None:
    for _ in range(2):
        builders.lane()
    made = administrator.post(URL, {"host": "test-host"}, format="json")
    assert (made.status_code, len(made.json())) == (201, 2)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"lanes": ["nope"]}, 400),
        ({"lanes": ["here"], "end": "2001-01-01T00:00:00Z"}, 400),
        ({"lanes": ["here"], "start": "soon"}, 400),
        ({"lanes": ["here"], "what": 1}, 400),
        ({"lanes": ["here"], "reason": "x" * 201}, 400),
    ],
)
def test_rest_refuses(administrator: APIClient, body: dict[str, Any], status: int) -> None:
    builders.lane("here")
    assert administrator.post(URL, body, format="json").status_code == status


def test_rest_is_for_administrators(member: APIClient) -> None:
    row = one(builders.lane("here"))
    assert member.post(URL, {"lanes": ["here"]}, format="json").status_code == 403
    assert member.patch(f"{URL}{row.pk}/", {"end": None}, format="json").status_code == 403
    assert member.post(f"{URL}{row.pk}/end/").status_code == 403


def test_rest_tells_a_booking_that_it_is_in_the_way(member: APIClient) -> None:
    one(builders.lane("here"))
    body = {"lane": "here", "kind": "gpu", "start": hours(1.5), "end": hours(2)}
    answer = member.post("/api/v1/bookings/", body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "maintenance")
    assert answer.json()["nearest"]


# --- Pages
def text_of(client: Client, place: str) -> str:
    answer = client.get(place)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_pages_show_it(administrator: APIClient, member: APIClient) -> None:
    lane = builders.lane("here")
    row = one(lane, start=None, reason="new fans")
    for client in (administrator, member):
        for place in ("/", "/lanes/here/"):
            assert "Under maintenance" in text_of(client, place)
    assert "/maintenance/" not in text_of(member, "/lanes/here/")
    assert f"{PAGE}{row.pk}/end/" in text_of(administrator, "/lanes/here/")
    assert "new fans" in text_of(administrator, PAGE)
    assert member.get(PAGE).status_code == 403


def test_pages_plan_change_and_end_it(administrator: APIClient, member: APIClient) -> None:
    lane = builders.lane("here")
    local = (now() + 2 * HOUR).strftime("%Y-%m-%dT%H:%M")
    said = {"lanes": [lane.pk], "start": "", "end": local, "reason": "", "next": "/lanes/here/"}
    assert member.post(PAGE, said).status_code == 403
    answer = administrator.post(PAGE, said)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/lanes/here/")
    place = f"{PAGE}{Maintenance.objects.get().pk}"
    administrator.post(f"{place}/change/", {"end": ""})
    assert Maintenance.objects.get().end is None
    answer = administrator.post(f"{place}/change/", {"end": "soon"}, follow=True)
    assert "Say until when" in answer.content.decode()
    answer = administrator.post(f"{place}/change/", {"end": "2001-02-03T04:05"})
    assert (answer.status_code, 'value="2001-02-03T04:05"' in answer.content.decode()) == (
        400,
        True,
    )
    assert administrator.get(f"{place}/change/").headers["Location"] == PAGE
    administrator.post(f"{place}/end/")
    assert Maintenance.objects.get().ended_at is not None
    assert administrator.post(PAGE, {"reason": "x"}).status_code == 400


def test_the_form_of_a_booking_says_so(member: APIClient, administrator: APIClient) -> None:
    lane = builders.lane("here")
    one(lane, start=None, end=None, reason="new fans")
    local = (now() + 2 * HOUR).strftime("%Y-%m-%dT%H:%M")
    said = f"/book/expect/?lane={lane.slug}&what=gpu&begins=now&end={local}"
    assert "new fans" in text_of(member, said)
    assert "Nothing runs then, whoever has booked it." in text_of(administrator, said)


def test_the_calendar_draws_it(member: APIClient) -> None:
    one(builders.lane("here"), start=None, end=1, reason="new fans")
    bands = member.get("/calendar/events/", {"view": "day"}).json()["bands"]
    assert [band["kind"] for band in bands] == ["maintenance"]
    assert "new fans" in bands[0]["words"]
