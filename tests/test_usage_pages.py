"""Usage as people see it: sums, who may see whose, CSV without formulas, what was held idle."""

import csv
import io
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date, timedelta
from typing import cast

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from pytest_django import DjangoAssertNumQueries

from gateway.models import UsageDay
from gateway.usage_days import roll_due_days
from gateway.usage_tables import Question, grouped, held_without_computing, total
from slotserve.csv_answers import guarded, written
from tests import builders
from tests.builders import at
from tests.conftest import Moment
from tests.usage_cast import record, served

DAY = date(2030, 1, 15)
PERIOD = Question(DAY, DAY + timedelta(days=1))
db = pytest.mark.django_db


def window(user: User) -> Client:
    """Somebody's browser."""
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def filled(moment: Moment) -> None:
    """Alice used half of her slot, bob held his without computing, and asked once outside of it."""
    moment.set(300)
    lane, preset = builders.lane("fast"), builders.preset("qwen")
    alice, bob = builders.person("alice"), builders.person("bob")
    busy = builders.booking(lane=lane, preset=preset, owner=alice)
    served(busy, ready=-5)
    record(busy, duration_ms=1_800_000, prompt_tokens=10, completion_tokens=100)
    builders.booking(lane=lane, preset=preset, owner=bob, start=at(60))
    record(at=at(200), owner=bob, preset="small", prompt_tokens=1, completion_tokens=2)
    builders.booking(lane=lane, owner=bob, kind="gpu", start=at(120))
    roll_due_days(at(300))


@db
@pytest.mark.usefixtures("filled")
def test_sums_by_member_lane_preset_and_day() -> None:
    boss = builders.administrator()
    by = {name: grouped(boss, PERIOD, name) for name in ("member", "lane", "preset", "day")}
    assert [(group.name, group.sums.booked) for group in by["member"]] == [
        ("bob", 7200.0),
        ("alice", 3600.0),
    ]
    assert [group.name for group in by["lane"]] == ["fast", ""]
    assert [group.name for group in by["preset"]] == ["qwen", "", "small"]
    assert [group.day for group in by["day"]] == [DAY]
    assert len({total(groups) for groups in by.values()}) == 1
    sums = total(by["day"])
    assert (sums.used, sums.idle, sums.unmeasured) == (1800.0, 5400.0, 3600.0)
    assert (sums.requests, sums.tokens, sums.used_share) == (2, 113, 0.25)


@db
@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("narrowed", "booked"),
    [
        ({"member": "alice"}, 3600.0),
        ({"member": "nobody"}, 0.0),
        ({"preset": "qwen"}, 7200.0),
        ({"first": DAY + timedelta(days=1)}, 0.0),
    ],
)
def test_sums_are_narrowed(narrowed: dict[str, object], booked: float) -> None:
    question = Question(**{"first": DAY, "last": PERIOD.last, **narrowed})  # type: ignore[arg-type]
    assert total(grouped(builders.administrator(), question, "lane")).booked == booked


@db
@pytest.mark.usefixtures("filled")
def test_a_name_that_another_has_now_is_theirs_alone() -> None:
    User.objects.filter(username="bob").update(username="robert")
    builders.person("bob")
    assert grouped(builders.administrator(), replace(PERIOD, member="bob"), "member") == []


@db
@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("name", ["bob", "robert"])
def test_who_was_renamed_is_one_by_the_last_name_and_found_by_both(name: str) -> None:
    newest = UsageDay.objects.get(owner_name="bob", requests=1)
    newest.day += timedelta(days=1)
    newest.owner_name = "robert"
    newest.save()
    User.objects.filter(username="bob").update(username="robert")
    boss = builders.administrator()
    (group,) = grouped(boss, replace(PERIOD, member=name), "member")
    assert (group.name, group.sums.booked, group.sums.requests) == ("robert", 7200.0, 1)
    assert {each.name for each in grouped(boss, PERIOD, "member")} == {"robert", "alice"}


@db
@pytest.mark.usefixtures("filled")
def test_members_see_their_own_and_strangers_nothing() -> None:
    alice, bob = builders.person("alice"), builders.person("bob")
    assert [group.name for group in grouped(alice, PERIOD, "member")] == ["alice"]
    assert held_without_computing(alice, PERIOD) == []
    assert len(held_without_computing(bob, PERIOD)) == 1
    page = window(alice).get("/usage/?member=bob&from=2030-01-15&to=2030-01-16")
    assert page.context["total"].booked == 0.0
    assert "bob" not in page.content.decode().replace("?member=bob", "")
    for path in ("/usage/", "/usage/export.csv"):
        assert Client().get(path)["Location"].startswith("/accounts/login/")
    assert Client().get("/api/v1/usage/summary/").status_code == 401
    nobody = builders.person("gone", is_active=False)
    assert not UsageDay.objects.visible_to(nobody).exists()


@db
@pytest.mark.usefixtures("filled")
def test_the_page_shows_tables_and_who_held_without_computing(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    boss = window(builders.administrator())
    # Session, user; days, groups, idle ones with their bookings, members and presets to
    # choose from, lanes; notices, announcements. Of all that is summed up, nothing is asked again.
    for asked in (11, 5):
        with django_assert_num_queries(asked):
            page = boss.get("/usage/")
    words = page.content.decode()
    assert page.status_code == 200
    assert [row.member for row in page.context["held"]] == ["bob"]
    assert 'data-day="2030-01-15"' in words
    assert 'data-used="0.5"' in words
    assert "Days are those of UTC." in words
    assert 'href="/usage/export.csv"' in words


@db
def test_a_short_or_a_used_booking_is_not_held_in_vain(moment: Moment) -> None:
    moment.set(300)
    builders.booking(end=at(9))
    used = builders.booking(start=at(20), end=at(30))
    record(used, duration_ms=61_000)
    barely = builders.booking(start=at(40), end=at(50))
    record(barely, duration_ms=59_000)
    roll_due_days(at(300))
    found = held_without_computing(builders.administrator(), PERIOD)
    assert [each.booking for each in found] == [barely.pk]


@db
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("from=yesterday", "from"),
        ("to=2030-02-30", "to"),
        ("to=0001-01-01", "to"),
        ("from=2030-02-01&to=2030-01-01", "from"),
        ("from=1980-01-01", "from"),
        ("lane=nowhere", "lane"),
        ("by=colour", "by"),
    ],
)
def test_what_cannot_be_asked_is_said_everywhere(moment: Moment, query: str, name: str) -> None:
    client = window(builders.administrator())
    page = client.get(f"/usage/?{query}")
    assert (page.status_code, list(page.context["asked"].errors)) == (400, [name])
    assert client.get(f"/usage/export.csv?{query}").status_code == 400
    answer = client.get(f"/api/v1/usage/summary/?{query}")
    assert answer.status_code == 400
    assert name in answer.content.decode()


@db
@pytest.mark.parametrize("query", ["lanes=a", "from=2030-01-01&limit=5"])
def test_parameters_that_nobody_reads_are_refused_by_rest(moment: Moment, query: str) -> None:
    client = window(builders.administrator())
    assert client.get(f"/api/v1/usage/summary/?{query}").status_code == 400
    assert client.get(f"/usage/?{query}").status_code == 200


@db
@pytest.mark.usefixtures("filled")
def test_rest_tells_the_same() -> None:
    answer = window(builders.person("alice")).get("/api/v1/usage/summary/?by=preset").json()
    assert (answer["zone"], answer["first"], answer["last"]) == ("UTC", "2029-12-17", "2030-01-15")
    (group,) = answer["groups"]
    assert group["name"] == "qwen"
    assert group["usage"] == answer["total"]
    assert (answer["total"]["booked_seconds"], answer["total"]["used_seconds"]) == (3600.0, 1800.0)
    assert (answer["total"]["requests"], answer["total"]["completion_tokens"]) == (1, 100)


@pytest.mark.parametrize("start", [*"=+-@", "\t", "\r", "\n", *"\uff1d\uff0b\uff0d\uff20"])
def test_no_text_is_a_formula(start: str) -> None:
    assert guarded(f"{start}HYPERLINK(1)") == f"'{start}HYPERLINK(1)"
    (row,) = csv.reader(io.StringIO(written([[f"{start}1", "plain", -1, 2.5]]), newline=""))
    assert row == [f"'{start}1", "plain", "-1", "2.5"]


@pytest.mark.django_db(transaction=True)
async def test_the_csv_is_sent_line_by_line_and_its_names_are_guarded(moment: Moment) -> None:
    moment.set(0)
    client = AsyncClient()
    boss = await User.objects.acreate(username="boss", is_staff=True)
    await client.aforce_login(boss)
    for number, name in enumerate(("=cmd|'x'!A1", "alice")):
        await UsageDay.objects.acreate(
            day=DAY,
            owner_id_for=number + 10,
            owner_name=name,
            lane_name="fast",
            preset="qwen",
            used_seconds=5400,
            requests=3,
        )
    answer = await client.get("/usage/export.csv")
    assert answer.streaming
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith('attachment; filename="usage-2029-12-17-')
    chunks = cast(AsyncIterator[bytes], answer)
    text = b"".join([chunk async for chunk in chunks]).decode()
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head[:5] == ["day", "member", "lane", "preset", "booked_hours"]
    assert [row[:6] for row in rows] == [
        ["2030-01-15", "'=cmd|'x'!A1", "fast", "qwen", "1.5", "1.5"],
        ["2030-01-15", "alice", "fast", "qwen", "1.5", "1.5"],
    ]


@db
@pytest.mark.usefixtures("filled")
def test_of_many_groups_those_that_held_longest_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    boss = window(builders.administrator())
    assert "in the CSV file" not in boss.get("/usage/?by=member").content.decode()
    monkeypatch.setattr("slotserve.web.usage.GROUPS_SHOWN", 1)
    page = boss.get("/usage/?by=member").content.decode()
    assert "1 more, held for a shorter time, is in the CSV file." in page
    assert '<th scope="row">bob</th>' in page
    assert '<th scope="row">alice</th>' not in page


@db
@pytest.mark.usefixtures("filled")
def test_what_is_kept_of_the_choices_shows_members_no_others() -> None:
    boss, alice = window(builders.administrator()), window(builders.person("alice"))
    for client, shows in ((boss, True), (alice, False), (boss, True)):
        assert ('name="member"' in client.get("/usage/").content.decode()) == shows
    assert alice.get("/usage/").context["presets"] != boss.get("/usage/").context["presets"]


@db
@pytest.mark.usefixtures("filled")
def test_what_is_kept_of_sums_is_shown_to_nobody_who_may_not_see_it() -> None:
    boss, alice, bob = (
        window(person)
        for person in (builders.administrator(), builders.person("alice"), builders.person("bob"))
    )
    for _ in range(2):
        for client, hours, held in ((boss, 3, 1), (alice, 1, 0), (bob, 2, 1)):
            context = client.get("/usage/?by=lane").context
            assert (context["total"].booked, len(context["held"])) == (3600.0 * hours, held)


@db
@pytest.mark.usefixtures("filled")
def test_what_is_kept_of_sums_answers_the_same_question_only() -> None:
    boss = window(builders.administrator())
    for query, hours in (("", 3), ("member=alice", 1), ("preset=qwen", 2), ("to=2030-01-14", 0)):
        assert boss.get(f"/usage/?{query}").context["total"].booked == 3600.0 * hours
    for by in ("member", "lane", "preset"):
        named = {row.name for row in boss.get(f"/usage/?by={by}").context["groups"]}
        assert named == {row.name for row in grouped(builders.administrator(), PERIOD, by)}


@db
@pytest.mark.usefixtures("filled")
def test_names_to_choose_from_are_escaped_and_the_chosen_one_is_selected() -> None:
    UsageDay.objects.filter(owner_name="bob").update(owner_name='<b>"&')
    page = window(builders.administrator()).get("/usage/", {"member": '<b>"&'}).content.decode()
    assert '<option value="&lt;b&gt;&quot;&amp;" selected>&lt;b&gt;&quot;&amp;</option>' in page
    assert '<option value="alice">alice</option>' in page
