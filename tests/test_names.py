"""Whose names a reader is shown, by SLOTSERVE_NAMES: on every page, in REST, at the gateway."""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from drf_spectacular.generators import SchemaGenerator
from pytest_django import Settings

from bookings import services
from bookings.models import Booking, Policy, State
from bookings.names import ShownTo, known_names, names_for
from gateway import publish
from lanes import clock, ticks
from lanes.models import Lane, LaneEvent, PresetRevision
from slotserve.settings import SLOTSERVE_NAMES
from tests import builders, every_page
from tests.conftest import forget_kept
from tests.every_page import ADMINISTRATOR, MEMBER, PAGES, Site
from wire.edges import TABLE_PARTS
from wire.words import said

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NAME = "zzhidden"
PARTS = (
    "/lanes/atlas-0/use/",
    "/lanes/atlas-0/gpus/",
    "/?q=atlas",
    "/calendar/events/?view=day",
    "/calendar/events/?view=week",
    "/calendar/events/?view=month",
    "/calendar/?view=week&as=list",
    "/book/expect/?lane=atlas-0&begins=now&what=gpu",
)
# Where others are named to everybody.
NAMING = {
    "/",
    "/lanes/atlas-0/",
    "/lanes/atlas-0/history/",
    "/book/expect/?lane=atlas-0&begins=now&what=gpu",
    "/calendar/",
    "/calendar/?view=day&as=list",
    "/calendar/?view=week&as=list",
    "/calendar/events/?view=day",
    "/models/presets/qwen3-14b/",
    "/api/v1/bookings/",
    "/api/v1/lanes/",
    "/api/v1/lanes/atlas-0/",
    "/api/v1/lanes/atlas-0/events/",
    "/api/v1/presets/qwen3-14b/revisions/",
}


@pytest.mark.parametrize(
    ("choice", "is_staff", "known"),
    [
        (ShownTo.MEMBERS, False, None),
        (ShownTo.MEMBERS, True, None),
        (ShownTo.GROUPS, False, {"ada", "bo"}),
        (ShownTo.GROUPS, True, None),
        (ShownTo.ADMINISTRATORS, False, {"ada"}),
        (ShownTo.ADMINISTRATORS, True, None),
    ],
)
def test_who_is_shown_whom(choice: ShownTo, is_staff: bool, known: set[str] | None) -> None:
    assert known_names(choice, "ada", is_staff=is_staff, company=lambda: ["bo"]) == known


def test_the_settings_know_the_same_choices(settings: Settings) -> None:
    assert ShownTo(SLOTSERVE_NAMES) is ShownTo.MEMBERS
    for choice in ShownTo:
        settings.SLOTSERVE_NAMES = choice.value
        assert names_for(builders.person("ada")).are_shown("ada")


@pytest.mark.parametrize(
    ("choice", "count"), [("members", 0), ("groups", 1), ("administrators", 0)]
)
def test_groups_are_read_by_one_query_where_they_matter(
    choice: str, count: int, settings: Settings
) -> None:
    settings.SLOTSERVE_NAMES = choice
    ada, bo = together("ada", "bo")
    with CaptureQueriesContext(connection) as asked:
        names = names_for(ada)
        assert names.of(ada.username) == "ada"
        assert names.are_shown(bo.username) is (choice != "administrators")
    assert len(asked) == count


@pytest.mark.parametrize(("choice", "is_shown"), [("groups", True), ("administrators", False)])
def test_where_groups_share_names_everybody_is_told_those_of_administrators(
    choice: str, is_shown: bool, settings: Settings
) -> None:
    settings.SLOTSERVE_NAMES = choice
    boss, (stranger,) = builders.administrator(), together("stranger")
    assert names_for(builders.person("ada")).are_shown(boss.username) is is_shown
    assert names_for(stranger).are_shown(boss.username) is is_shown
    assert not names_for(stranger).are_shown("ada")


def together(*names: str) -> list[User]:
    """People of one group."""
    group, _ = Group.objects.get_or_create(name="-".join(names))
    people = [builders.person(name) for name in names]
    for person in people:
        person.groups.add(group)
    return people


@pytest.fixture
def hidden(settings: Settings) -> Site:
    """The company, in which all that others did was done by one person of a group of their own."""
    settings.SLOTSERVE_NAMES = "administrators"
    forget_kept()
    site = every_page.made()
    member, (other,) = site_member(site), together(NAME)
    member.groups.set([Group.objects.create(name="theirs")])
    Booking.objects.exclude(owner=member).update(owner=other)
    LaneEvent.objects.exclude(actor=None).delete()
    PresetRevision.objects.update(created_by=other)
    _do(site, other)
    return site


def site_member(site: Site) -> User:
    return User.objects.get(pk=str(site.parts["person"]))


def _do(site: Site, other: User) -> None:
    """Bookings, and sentences that are kept of them, old ones and nested ones."""
    lane, now = Lane.objects.get(slug="atlas-0"), clock.database_now()
    lane.bookings.filter(end__gt=now).update(state=State.CANCELLED)
    Policy.objects.all().delete()
    for start in (None, now + 2 * HOUR):
        end = (start or now) + HOUR
        made = services.book(owner=other, lane=lane, kind="gpu", preset=None, start=start, end=end)
        assert isinstance(made, Booking), made
        morgan, end = site.company.administrator, end + HOUR / 4
        moved = services.move(made, actor=morgan, start=made.start, end=end)
        assert isinstance(moved, Booking), moved
    slot = said("in the slot of {member}", member=NAME)
    for kind, words in (
        ("outsider", said("python holds 3 GiB {slot}", slot=slot)),
        ("edit", said("{actor} {what}.", actor=NAME, what=said("made this lane"))),
    ):
        LaneEvent.objects.create(lane=lane, at=now, kind=kind, sentence=words, words=words.kept())
    LaneEvent.objects.create(
        lane=lane, at=now, kind="edit", sentence=f"{NAME} made this lane.", actor=other
    )


def addresses(site: Site) -> Iterator[str]:
    """Every page of members, of what programs and parts of pages read, and every GET of REST."""
    yield from (site.address(look) for look in PAGES if look.who == MEMBER)
    yield from PARTS
    yield from (f"/calendar/bookings/{pk}/" for pk in others_bookings())
    values = {"lanes": "atlas-0", "presets": "qwen3-14b", "bookings": others_bookings()[0]}
    schema: Any = SchemaGenerator().get_schema(None, public=True)  # type: ignore[no-untyped-call]
    for path, deeds in schema["paths"].items():
        if "get" in deeds:
            value = values.get(path.split("/")[3], site.parts["person"])
            yield re.sub(r"\{[a-z_]+\}", str(value), path)


def others_bookings() -> list[int]:
    found = Booking.objects.filter(owner__username=NAME, lane__slug="atlas-0")
    return list(found.order_by("-pk").values_list("pk", flat=True)[:2])


def naming(site: Site, asked: Iterable[str] | None = None, who: str = MEMBER) -> set[str]:
    """Of these addresses, or all, those whose answers have the name."""
    found, client = set(), site.clients[who]
    for address in asked or addresses(site):
        answer = client.get(address)
        assert answer.status_code < 500, address
        if NAME.encode() in answer.content:
            found.add(address)
    return found


def test_nobody_but_administrators_is_told(hidden: Site) -> None:
    assert naming(hidden) == set()
    assert naming(hidden, NAMING, ADMINISTRATOR) == NAMING
    assert naming(hidden, NAMING) == set()  # cards are kept by whom they name


def test_another_group_is_not_told_and_ones_own_is(hidden: Site, settings: Settings) -> None:
    settings.SLOTSERVE_NAMES = "groups"
    assert naming(hidden, NAMING) == set()
    together(NAME, site_member(hidden).username)
    assert naming(hidden, NAMING) == NAMING


def test_members_are_told_everywhere_as_long_as_nothing_is_set(
    hidden: Site, settings: Settings
) -> None:
    settings.SLOTSERVE_NAMES = "members"
    own = {f"/calendar/bookings/{pk}/" for pk in others_bookings()}
    assert naming(hidden) >= NAMING | own


def test_who_is_hidden_is_a_member_and_null_to_programs(hidden: Site) -> None:
    client = hidden.clients[MEMBER]
    history = client.get("/lanes/atlas-0/history/").content.decode()
    assert "a member made this lane." in history
    assert "python holds 3 GiB in the slot of a member" in history
    assert "Something that a member did." in history
    lane = client.get("/api/v1/lanes/atlas-0/").json()
    assert lane["booking"]["owner"] is None
    assert client.get("/api/v1/lanes/atlas-0/events/").json()[0]["actor"] is None
    own = client.get("/api/v1/bookings/?mine=1").json()["results"]
    assert {row["owner"] for row in own} == {site_member(hidden).username}


def test_a_series_that_clashes_is_not_told_with_whom(hidden: Site) -> None:
    start = Booking.objects.get(pk=others_bookings()[0]).start.replace(microsecond=0)
    wish = {
        "lane": "atlas-0", "kind": "gpu", "every": "daily", "count": 2,
        "start": start.isoformat(), "end": (start + HOUR).isoformat(), "preview": True,
    }  # fmt: skip
    answer = hidden.clients[MEMBER].post("/api/v1/bookings/series/", wish, "application/json")
    assert NAME not in answer.content.decode()
    assert "Taken by a member from" in answer.json()["occurrences"][0]["refusal"]["detail"]
    wish |= {"preview": False}
    answer = hidden.clients[MEMBER].post("/api/v1/bookings/series/", wish, "application/json")
    assert (answer.status_code, NAME in answer.content.decode()) == (409, False)


def test_a_refusal_of_taken_time_names_nobody(hidden: Site) -> None:
    start = Booking.objects.get(pk=others_bookings()[0]).start
    wish = {
        "lane": "atlas-0", "kind": "gpu",
        "start": start.isoformat(), "end": (start + HOUR).isoformat(),
    }  # fmt: skip
    answer = hidden.clients[MEMBER].post("/api/v1/bookings/", wish, "application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "slot_taken")
    assert NAME not in answer.content.decode()


@pytest.mark.valkey
def test_the_gateway_knows_no_names(hidden: Site, valkey: str) -> None:
    """So its 403 can tell none."""
    assert publish.publish()
    held: Any = ticks.valkey().hgetall(TABLE_PARTS)
    ticks.valkey().close()
    assert b"atlas-0" in b"".join(held.values())
    assert NAME.encode() not in b"".join(held.values())


@pytest.mark.parametrize("choice", ["groups", "administrators"])
def test_a_member_is_typed_where_not_all_are_named(choice: str, settings: Settings) -> None:
    booking, guest = builders.booking(), builders.person("guest")
    page, client = f"/bookings/{booking.pk}/", Client()
    client.force_login(booking.owner)
    assert "<option>guest</option>" in client.get(page).content.decode()
    settings.SLOTSERVE_NAMES = choice
    text = client.get(page).content.decode()
    assert "guest" not in re.sub("<small.*?</small>", "", text)
    assert '<input class="form-control" id="share-member" name="member"' in text
    answer = client.post(f"{page}share/", {"member": "nobody"})
    assert answer.status_code == 400
    assert "There is no such member who may log in." in answer.content.decode()
    client.post(f"{page}share/", {"member": " guest "})
    assert [share.member for share in booking.shares.all()] == [guest]
    assert ">guest</span>" in client.get(page).content.decode()
    assert "owner shared the booking with guest" in client.get(page).content.decode()


@pytest.mark.parametrize(
    "address", ["/", "/lanes/demo/", "/calendar/?as=list", "/api/v1/bookings/"]
)
def test_an_answer_reads_groups_once_however_many_it_names(
    address: str, settings: Settings
) -> None:
    lane, now = builders.lane("demo", default_preset=builders.preset()), clock.database_now()
    for number in range(3):
        owner, start = builders.person(f"p{number}"), now + (number - 0.5) * HOUR
        builders.booking(
            lane=lane, owner=owner, preset=lane.default_preset, start=start, end=start + HOUR
        )
    client, asked = Client(), {}
    client.force_login(builders.person("reader"))
    client.get("/bookings/")
    for settings.SLOTSERVE_NAMES in ("members", "groups", "administrators"):
        forget_kept()
        with CaptureQueriesContext(connection) as found:
            assert client.get(address).status_code == 200
        asked[settings.SLOTSERVE_NAMES] = len(found)
    assert asked["groups"] == asked["members"] + 1
    assert asked["administrators"] == asked["members"]
