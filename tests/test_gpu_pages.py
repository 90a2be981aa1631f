"""What pages and REST show of cards."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from lanes.models import GpuState, HostGpus, Lane, LaneMinute, PresetFailure
from tests import builders, fleet, gpu_cast
from tests.conftest import Moment
from tests.gpu_cast import GIB, poll
from tests.nvml.driver import FakeDriver

pytest_plugins = ["tests.nvml.fixtures"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def lane(moment: Moment) -> Lane:
    """A lane on GPU-a."""
    return gpu_cast.gpu_lane()


@pytest.fixture
def stranger() -> Iterator[int]:
    """The pid of a process that no lane owns."""
    with gpu_cast.stranger() as pid:
        yield pid


@pytest.fixture
def member(client: Client) -> Client:
    """A member's browser."""
    client.force_login(builders.person("member"))
    return client


def page(client: Client, address: str) -> str:
    """The page's text, with its white space as one space."""
    answer = client.get(address)
    assert answer.status_code == 200, address
    return " ".join(answer.content.decode().split())


def test_a_lane_s_page_shows_its_cards_and_who_is_on_them(
    lane: Lane, driver: FakeDriver, moment: Moment, member: Client, stranger: int
) -> None:
    driver.hold((stranger, 11 * GIB)).change(utilisation=73, milliwatts=251_000, celsius=61)
    poll(moment, 2)
    for address in ("/lanes/big/", "/lanes/big/gpus/"):
        text = page(member, address)
        assert "NVIDIA GeForce RTX 4090" in text
        assert "11.0 GiB of 24.0 GiB in use · 73 % busy · 251 W · 61 °C" in text
        assert f'another program <span class="text-secondary">pid {stranger} · 11.0 GiB' in text
        assert "no lane's</span>" in text


def test_administrators_alone_are_told_whose_processes_they_are_and_what_they_run(
    lane: Lane, driver: FakeDriver, moment: Moment, member: Client, stranger: int
) -> None:
    driver.hold((stranger, GIB))
    poll(moment, 2)
    administrator = Client()
    administrator.force_login(builders.administrator())
    (known,) = administrator.get("/api/v1/lanes/big/gpus/").json()[0]["processes"]
    assert known["command"]
    assert known["user"]
    for address in ("/lanes/big/", "/lanes/big/gpus/"):
        assert f"<code>{known['command']}</code>" in page(administrator, address)
        assert f"pid {stranger} of {known['user']}" in page(administrator, address)
        assert f"<code>{known['command']}</code>" not in page(member, address)
    for address in ("lanes/big/gpus/", "gpus/GPU-a/"):
        answer = member.get(f"/api/v1/{address}").json()
        (hidden,) = (answer[0] if isinstance(answer, list) else answer)["processes"]
        assert hidden == known | {"command": "", "user": ""}


def test_a_process_is_being_found_out_until_two_clean_polls(
    lane: Lane, driver: FakeDriver, moment: Moment, member: Client, stranger: int
) -> None:
    driver.hold((stranger, GIB))
    poll(moment)
    text = page(member, "/lanes/big/gpus/")
    assert "being found out" in text
    assert "no lane's" not in text


def test_an_empty_card_an_old_driver_and_a_silent_host_are_told_apart(
    lane: Lane, driver: FakeDriver, moment: Moment, member: Client
) -> None:
    poll(moment)
    assert "No process is on it." in page(member, "/lanes/big/gpus/")
    GpuState.objects.update(processes=None)
    assert "names no processes: 510 or newer" in page(member, "/lanes/big/gpus/")
    moment.now += timedelta(minutes=2)
    assert "this may be old" in page(member, "/lanes/big/gpus/")


def test_a_trouble_of_the_driver_is_said_once(lane: Lane, moment: Moment, member: Client) -> None:
    words = "The NVIDIA driver does not answer"
    HostGpus.objects.create(host=lane.host, read_at=moment.now, trouble=words)
    GpuState.objects.create(gpu=lane.gpus.get(), read_at=moment.now, trouble=words)
    assert page(member, "/lanes/big/gpus/").count(words) == 1


def test_a_card_that_was_never_read_says_so(lane: Lane, member: Client) -> None:
    assert "has not been read yet" in page(member, "/lanes/big/")


def test_a_lane_without_cards_has_no_gpu_part(moment: Moment, member: Client) -> None:
    builders.lane("cpu")
    assert 'id="gpus"' not in page(member, "/lanes/cpu/")
    assert page(member, "/lanes/cpu/gpus/") == ""


def test_commands_of_processes_cannot_write_html(
    lane: Lane, moment: Moment, client: Client
) -> None:
    client.force_login(builders.administrator())
    process = {"pid": 1, "ticks": 5, "user": "<b>", "command": "<script>", "memory_bytes": 5}
    GpuState.objects.create(gpu=lane.gpus.get(), read_at=moment.now, processes=[process])
    text = page(client, "/lanes/big/gpus/")
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_the_day_is_a_picture_with_a_title_and_words(
    lane: Lane, moment: Moment, member: Client
) -> None:
    LaneMinute.objects.create(
        lane=lane,
        slot=700,
        minute=builders.at(-20),
        used_bytes=12 * GIB,
        outside_bytes=3 * GIB,
        utilisation=40,
    )
    text = page(member, "/lanes/big/gpus/day/")
    assert "<title" in text
    words = "At most 12.0 GiB of 24.0 GiB in use, at 11:40; 40 % busy on average; up to 3.0 GiB"
    assert words in text
    assert 'class="outside" d="M1419' in text


def test_the_picture_is_kept_for_a_minute_for_each_lane_and_language(
    lane: Lane, moment: Moment, member: Client
) -> None:
    address, empty = "/lanes/big/gpus/day/", "Nothing was read in this time."
    builders.lane("other").gpus.add(builders.gpu(memory_bytes=24 * GIB))
    assert empty in page(member, address)
    LaneMinute.objects.create(
        lane=lane, slot=719, minute=builders.at(-1), used_bytes=12 * GIB, outside_bytes=0
    )
    assert empty in page(member, address)
    assert "At most 12.0 GiB" in page(member, f"{address}?hours=6")
    assert empty in page(member, "/lanes/other/gpus/day/?hours=6")
    member.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"
    assert empty not in page(member, address)
    member.cookies[settings.LANGUAGE_COOKIE_NAME] = "en"
    moment.set(1)
    assert "At most 12.0 GiB" in page(member, address)


def test_a_lane_s_cards_cost_a_fixed_number_of_queries(
    lane: Lane,
    driver: FakeDriver,
    member: Client,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(4):
        lane.gpus.add(builders.gpu())
    # session, person; the lane and its cards; the driver; cards with readings, and their lanes
    with django_assert_num_queries(7):
        member.get("/lanes/big/gpus/")


def test_a_stranger_sees_no_cards(lane: Lane, client: Client) -> None:
    for address in ("/lanes/big/gpus/", "/lanes/big/gpus/day/"):
        assert client.get(address).status_code == 302
    for address in ("gpus/", "gpus/GPU-a/", "lanes/big/gpus/", "lanes/big/gpu-history/"):
        assert client.get(f"/api/v1/{address}").status_code == 401


def test_what_has_no_room_is_told_on_the_lane_s_page(
    lane: Lane, moment: Moment, member: Client
) -> None:
    wanted = builders.preset()
    assert wanted.current is not None
    fleet.order(lane, wanted)
    PresetFailure.objects.create(
        lane=lane,
        revision=wanted.current,
        count=1,
        failed_at=moment.now,
        reason="needs 14.0 GiB of GPU memory, 9.0 GiB free",
        failure_kind="gpu_taken",
    )
    text = page(member, "/lanes/big/")
    assert f"{wanted.name} does not run" in text
    assert "next try at" in text
    assert "needs 14.0 GiB of GPU memory, 9.0 GiB free" in text


def test_rest_shows_every_card_with_lane_reading_and_processes(
    lane: Lane, driver: FakeDriver, moment: Moment, member: Client, stranger: int
) -> None:
    driver.hold((stranger, 11 * GIB)).change(utilisation=73)
    poll(moment, 2)
    (listed,) = member.get("/api/v1/gpus/").json()["results"]
    assert (listed["uuid"], listed["host"], listed["lane"]) == ("GPU-a", "test-host", "big")
    assert (listed["used_bytes"], listed["utilisation"]) == (11 * GIB, 73)
    assert listed["outside_bytes"] == 11 * GIB
    (process,) = listed["processes"]
    assert process["pid"] == stranger
    assert (process["lane"], process["is_outsider"]) == (None, True)
    assert member.get("/api/v1/gpus/GPU-a/").json() == listed
    assert member.get("/api/v1/lanes/big/gpus/").json() == [listed]


@pytest.mark.parametrize(
    "address", ["gpus/GPU-no/", "gpus/GPU%20a/", "lanes/no/gpus/", "lanes/no/gpu-history/"]
)
def test_what_is_not_there_is_a_404_in_json(member: Client, address: str) -> None:
    answer = member.get(f"/api/v1/{address}")
    assert answer.status_code == 404
    assert json.loads(answer.content)["code"] == "not_found"


def test_rest_shows_a_day_by_minutes(
    lane: Lane, driver: FakeDriver, moment: Moment, member: Client
) -> None:
    driver.change(used=5 * GIB)
    poll(moment, 13)
    rows = member.get("/api/v1/lanes/big/gpu-history/").json()
    assert [row["minute"] for row in rows] == ["2030-01-15T12:00:00Z", "2030-01-15T12:01:00Z"]
    assert (rows[0]["used_bytes"], rows[0]["samples"]) == (5 * GIB, 11)
    assert rows[0]["power_watts"] == 30.0


def test_rest_shows_a_week_by_five_minutes(
    lane: Lane, driver: FakeDriver, moment: Moment, member: Client
) -> None:
    driver.change(used=5 * GIB)
    poll(moment, 13)
    (row,) = member.get("/api/v1/lanes/big/gpu-history/?days=7").json()
    assert (row["minute"], row["used_bytes"]) == ("2030-01-15T12:00:00Z", 5 * GIB)
    refused = member.get("/api/v1/lanes/big/gpu-history/?days=8")
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")


def test_cards_are_on_the_hosts_page_for_administrators(
    lane: Lane, driver: FakeDriver, moment: Moment, client: Client
) -> None:
    client.force_login(builders.administrator())
    poll(moment)
    text = page(client, "/administration/hosts/")
    assert "NVIDIA GeForce RTX 4090, 24.0 GiB" in text
    assert '<a href="/lanes/big/">big</a>' in text
