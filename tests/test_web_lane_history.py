"""A lane's history: sentences by kind and page, loads as a picture, hours of its cards."""

from itertools import count
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from lanes import clock
from lanes.models import Lane, LaneEvent, LoadRecord, Preset
from slotserve.web.lane_history import EVENTS_SHOWN
from slotserve.web.load_picture import HEIGHT, LEAST, draw_loads
from tests import builders
from tests.test_web_catalogue import loaded
from tests.test_web_pages import signed_in

pytestmark = pytest.mark.django_db
KINDS = {
    "order": "decisions",
    "ready": "servers",
    "booking.created": "bookings",
    "choice": "people",
    "test": "people",
    "memory": "others",
}


def happened(lane: Lane, kind: str, sentence: str) -> LaneEvent:
    """A sentence about it."""
    at = clock.database_now()
    return LaneEvent.objects.create(lane=lane, at=at, kind=kind, sentence=sentence)


def shown(client: Client, query: str = "") -> str:
    """The page's text."""
    answer = client.get(f"/lanes/here/history/{query}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


@pytest.mark.parametrize("kind", ["", *sorted(set(KINDS.values())), "nonsense"])
def test_sentences_are_shown_by_kind(kind: str) -> None:
    lane = builders.lane("here")
    for each in KINDS:
        happened(lane, each, f"sentence of {each}.")
    text = shown(signed_in("member"), f"?kind={kind}")
    wanted = {each for each, group in KINDS.items() if kind in ("", "nonsense", group)}
    assert {each for each in KINDS if f"sentence of {each}." in text} == wanted


def test_older_ones_are_on_the_next_page() -> None:
    lane = builders.lane("here")
    events = [happened(lane, "order", f"number {n}.") for n in range(EVENTS_SHOWN + 1)]
    client = signed_in("member")
    text = shown(client)
    assert "number 0." not in text
    place = f"?kind=&amp;before={events[1].pk}"
    assert place in text
    older = shown(client, place.replace("&amp;", "&"))
    assert "number 0." in older
    assert "number 1." not in older
    for odd in ("?before=x", "?before=0", f"?before={2**70}"):
        assert "number 50." in shown(client, odd)


def test_strangers_see_nothing() -> None:
    builders.lane("here")
    assert Client().get("/lanes/here/history/").status_code == 302
    assert signed_in("member").get("/lanes/none/history/").status_code == 404


def test_loads_are_a_picture_and_a_table() -> None:
    lane, preset = builders.lane("here"), builders.preset("small")
    loaded(lane, preset, 10.0, 20.0)
    loaded(lane, preset, 5.0, succeeded=False)
    for page in ("/lanes/here/history/", "/lanes/here/"):
        text = signed_in("member").get(page).content.decode()
        assert text.count("<rect") == 3
        assert text.count('class="load-failed"') == 1
        assert "The last 3 loads; the longest took 20.0 s" in text
        assert "small: 10.0 s" in text


def test_bars_are_as_high_as_their_share() -> None:
    times = count()

    def load(seconds: float) -> LoadRecord:
        return LoadRecord(seconds=seconds, started_at=builders.at(next(times)), succeeded=True)

    picture = draw_loads([load(10.0), load(40.0), load(0.0)])
    assert [bar.height for bar in picture.bars] == [LEAST, HEIGHT, 25.0]
    assert [bar.x for bar in picture.bars] == [0, 24, 48]
    assert picture.width == 20 * 24 - 4
    assert draw_loads([]).bars == ()


def test_its_page_asks_a_fixed_number_of_questions(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    lane, client = builders.lane("here"), signed_in("member")
    for number in range(3):
        happened(lane, "order", f"number {number}")
        loaded(lane, builders.preset(), 3.0)
    # Session, member; lane, cards; sentences; loads; unread notices, announcements.
    with django_assert_num_queries(8):
        shown(client)


@pytest.mark.parametrize(
    ("query", "box"),
    [
        ("", "0 0 1440"),
        ("?hours=6", "1080 0 360"),
        ("?hours=168", "0 0 2016"),
        ("?hours=x", "0 0 1440"),
    ],
)
def test_the_hours_of_the_cards_are_chosen(query: str, box: str) -> None:
    builders.lane("here").gpus.add(builders.gpu(memory_bytes=2**30))
    for place in ("/lanes/here/", "/lanes/here/gpus/day/"):
        text = signed_in("member").get(place + query).content.decode()
        assert f'viewBox="{box} 100"' in text


def posted(client: Client, **body: Any) -> int:
    """The status of setting a default."""
    return client.post("/lanes/here/default/", body).status_code


def test_administrators_set_the_default() -> None:
    lane, preset = builders.lane("here"), builders.preset("small")
    client = signed_in("administrator")
    assert posted(client, default_preset="small") == 302
    lane.refresh_from_db()
    assert lane.default_preset == preset
    assert posted(client, default_preset="") == 302
    lane.refresh_from_db()
    assert lane.default_preset is None


def test_an_edit_is_told_in_the_readers_words() -> None:
    lane, preset = builders.lane("here"), builders.preset("small")
    client = signed_in("administrator")
    assert posted(client, default_preset=preset.slug) == 302
    assert "administrator changed default preset." in shown(client)
    german = client.get("/lanes/here/history/", headers={"Accept-Language": "de"})
    assert "administrator hat geändert: Standard-Preset." in german.content.decode()
    assert lane.events.count() == 1


def test_a_choice_is_told_in_the_readers_language_and_zone() -> None:
    builders.lane("here")
    client = signed_in("administrator")
    client.cookies["zone"] = "Europe/Vienna"
    answer = client.post(
        "/lanes/here/choose/",
        {"preset": "", "until": "2099-01-15T13:00"},
        headers={"Accept-Language": "de"},
        follow=True,
    )
    text = answer.content.decode()
    assert "nichts (entladen) bis 15. Jan 2099 13:00 CET" in text


def test_loads_come_along_when_the_lane_is_asked_for_anew() -> None:
    lane, preset = builders.lane("here"), builders.preset("small")
    loaded(lane, preset, 10.0)
    part = signed_in("member").get("/lanes/here/", headers={"HX-Request": "true"})
    text = part.content.decode()
    assert '<div class="card-body" id="lane-loads-shown" hx-swap-oob="morph">' in text
    assert text.count("<rect") == 1


def test_what_cannot_be_the_default_is_refused() -> None:
    lane = builders.lane("here")
    builders.preset("far", model_file=builders.model_file(host=builders.host("far")))
    Preset.objects.filter(pk=builders.preset("old").pk).update(archived_at=builders.NOON)
    client = signed_in("administrator")
    for slug in ("far", "old", "none"):
        assert posted(client, default_preset=slug) == 400
    assert client.get("/lanes/here/default/").status_code == 302
    assert posted(signed_in("member"), default_preset="") == 403
    lane.refresh_from_db()
    assert lane.default_preset is None
