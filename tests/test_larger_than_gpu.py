"""Models that are larger than a lane's GPU memory: marked, and booked all the same."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from lanes import clock
from lanes.models import Lane, ModelFile, Preset
from tests import builders
from tests.builders import NOON, at, person

pytestmark = pytest.mark.django_db
WARNING = "Larger than GPU memory of small: big may not load."


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "database_now", lambda: NOON)


@pytest.fixture
def small() -> Lane:
    lane = builders.lane("small")
    lane.gpus.add(builders.gpu(memory_bytes=24 * 10**9))
    return lane


@pytest.fixture
def big() -> Preset:
    return builders.preset("big", model_file=builders.model_file(size_bytes=25 * 10**9))


@pytest.fixture
def member(small: Lane, big: Preset) -> Client:
    client = Client()
    client.force_login(person("member"))
    return client


def form(lane: str) -> dict[str, str]:
    return {"lane": lane, "what": "preset:big", "begins": "now", "end": "2030-01-15T13:00"}


def test_presets_name_the_lanes_on_whose_cards_they_do_not_fit(member: Client) -> None:
    builders.preset("little")
    builders.lane("cpu")
    shown = {one["slug"]: one for one in member.get("/api/v1/presets/").json()["results"]}
    assert shown["big"]["larger_than_gpu_memory_of"] == ["small"]
    assert shown["little"]["larger_than_gpu_memory_of"] == []


def test_models_name_those_lanes_in_list_and_detail(member: Client) -> None:
    builders.preset("little")
    builders.lane("cpu")
    builders.lane("elsewhere", host=builders.host("far")).gpus.add(
        builders.gpu(memory_bytes=1, host=builders.host("far"))
    )
    found = member.get("/api/v1/models/").json()["results"]
    marks = {tuple(one["presets"]): one["larger_than_gpu_memory_of"] for one in found}
    assert marks == {("big",): ["small"], ("little",): []}
    pk = next(one["id"] for one in found if one["presets"] == ["big"])
    assert member.get(f"/api/v1/models/{pk}/").json()["larger_than_gpu_memory_of"] == ["small"]


def test_models_are_marked_at_a_fixed_number_of_queries(member: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as told:
            member.get("/api/v1/models/")
        return len(told)

    few = queries()
    for _ in range(5):
        builders.preset(model_file=builders.model_file(size_bytes=25 * 10**9))
    assert queries() == few


def test_what_to_expect_says_it_while_the_form_is_filled_in(member: Client) -> None:
    page = member.get("/book/expect/", form("small")).content.decode()
    assert "Larger than GPU memory of this lane: big may not load. You can book it all" in page


def test_the_booking_form_marks_what_fits_no_lane(member: Client) -> None:
    assert "big · Larger than GPU memory" in member.get("/book/").content.decode()
    large = builders.lane("large")
    large.gpus.add(builders.gpu(memory_bytes=80 * 10**9))
    assert "big · Larger than GPU memory" not in member.get("/book/").content.decode()


def test_it_is_booked_all_the_same_with_a_warning(member: Client) -> None:
    page = member.post("/book/", form("small"), follow=True).content.decode()
    assert WARNING in page


def test_the_api_books_it_with_a_warning(member: Client) -> None:
    wish = {"lane": "small", "preset": "big", "end": at(60).isoformat()}
    made = member.post("/api/v1/bookings/", wish, content_type="application/json")
    assert (made.status_code, made.json()["warnings"]) == (201, [WARNING])
    (listed,) = member.get("/api/v1/bookings/").json()["results"]
    assert listed["warnings"] == [WARNING]


def test_a_file_in_trouble_is_warned_of_as_in_the_form(member: Client, small: Lane) -> None:
    preset = builders.preset("little")
    small.default_preset = preset
    small.save()
    assert member.get("/api/v1/lanes/small/").json()["warnings"] == []
    ModelFile.objects.filter(revisions__preset=preset).update(missing_since=NOON)
    wish = {"lane": "small", "preset": "little", "end": at(60).isoformat()}
    made = member.post("/api/v1/bookings/", wish, content_type="application/json").json()
    assert made["warnings"][0].startswith("little may not load. Its file is not there any more")
    assert member.get("/api/v1/lanes/small/").json()["warnings"] == made["warnings"]


def test_what_fits_has_no_warning(member: Client, small: Lane) -> None:
    builders.booking(lane=small, preset=builders.preset("little"), owner=person("member"))
    builders.booking(lane=small, kind="gpu", start=at(120), owner=person("member"))
    found = member.get("/api/v1/bookings/").json()["results"]
    assert [one["warnings"] for one in found] == [[], []]
