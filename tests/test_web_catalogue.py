"""The catalogue of models and the page of a preset, as members and administrators see them."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from gateway.models import UsageRecord
from lanes.models import Lane, LoadRecord, Phase, Preset, TestLoad
from lanes.presets import save_preset
from slotserve import preset_figures
from slotserve.preset_page import lane_rows
from tests import browser_pages, builders
from tests.conftest import forget_kept
from tests.test_web_pages import signed_in

pytestmark = pytest.mark.django_db
PAGE = "/models/"


def shown(client: Client, page: str = PAGE) -> str:
    """The page's text."""
    answer = client.get(page)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def loaded(lane: Lane, preset: Preset, *seconds: float, succeeded: bool = True) -> None:
    """Loads of that many seconds."""
    assert preset.current is not None
    for number, each in enumerate(seconds):
        LoadRecord.objects.create(
            lane=lane,
            revision=preset.current,
            generation=number,
            started_at=builders.at(number),
            seconds=each,
            succeeded=succeeded,
        )


def running(lane: Lane, preset: Preset, **facts: Any) -> None:
    """A server of it that is ready."""
    browser_pages.order(lane, preset)
    browser_pages.runtime(lane, preset, Phase.READY, **facts)


def streamed(lane: Lane, preset: Preset, tokens: int, seconds: float) -> None:
    """A request whose answer streamed so many tokens in that time, after one of waiting."""
    UsageRecord.objects.create(
        request_id=f"{UsageRecord.objects.count()}",
        at=builders.NOON,
        lane=lane,
        preset=preset.slug,
        route="chat",
        status=200,
        first_byte_ms=1000,
        duration_ms=1000 + seconds * 1000,
        completion_tokens=tokens,
    )


def test_members_see_what_there_is_and_how_it_does() -> None:
    lane = builders.lane("big")
    file = builders.model_file(architecture="qwen2", quantisation="Q4_K_M", context_length=32_768)
    preset = builders.preset("small", model_file=file, aliases=["gpt-4"])
    loaded(lane, preset, 10, 20)
    streamed(lane, preset, 100, 2)
    streamed(lane, preset, 50, 1)
    running(lane, preset, context_length=4096, capabilities=["completion"])
    text = shown(signed_in("member"))
    for fact in (
        "qwen2",
        "Q4_K_M",
        "100.0 MB",
        "context 32,768",
        "4,096 tokens a request",
        "completion",
        "<code>small</code>",
        "gpt-4",
        "loads in 15 s",
        "50 tokens/s",
        "ready on big",
        "fits its 1 lane",
        "/book/?lane=big&amp;what=preset:small",
    ):
        assert fact in text, fact


def test_members_see_neither_paths_nor_controls() -> None:
    file = builders.model_file(path="/secret/place.gguf")
    builders.preset("small", model_file=file, arguments=["-c", "4096"])
    for page in (PAGE, "/models/presets/small/"):
        text = shown(signed_in("member"), page)
        assert "/secret/" not in text
        assert "-c 4096" not in text
        assert "/administration/" not in text
    assert "/secret/place.gguf" in shown(signed_in("administrator"), "/models/presets/small/")


def test_strangers_are_led_to_log_in() -> None:
    builders.preset("small")
    for page in (PAGE, "/models/presets/small/"):
        assert Client().get(page).status_code == 302


def test_a_model_that_does_not_fit_says_so_of_each_lane() -> None:
    small, large = builders.lane("small-lane"), builders.lane("large-lane")
    small.gpus.add(builders.gpu(memory_bytes=10**6))
    large.gpus.add(builders.gpu(memory_bytes=10**12))
    builders.preset("one")
    assert "fits 1 of 2 lanes" in shown(signed_in("member"))
    text = shown(signed_in("member"), "/models/presets/one/")
    assert text.index("large-lane") < text.index(">fits<") < text.index("small-lane")
    assert "does not fit" in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"one", "two", "bare"}),
        ("q=QWEN", {"one"}),
        ("q=other-name", {"two"}),
        ("q=nothing<b>", set()),
        ("show=presets", {"one", "two"}),
        ("show=loaded", {"two"}),
        ("lane=lane-here", {"two", "bare"}),
        ("able=vision", {"two"}),
        ("host=far", set()),
        ("show=nonsense&lane=none&page=x", {"one", "two", "bare"}),
    ],
)
def test_models_are_filtered(query: str, found: set[str]) -> None:
    lane = builders.lane("lane-here")
    lane.gpus.add(builders.gpu(memory_bytes=10**9))
    builders.host("far")
    one = builders.model_file(architecture="qwen2", size_bytes=2 * 10**9)
    two, bare = builders.model_file(), builders.model_file()
    builders.preset("one", model_file=one)
    preset = builders.preset("two", model_file=two, aliases=["other-name"])
    running(lane, preset, context_length=4096, capabilities=["vision"])
    text = shown(signed_in("member"), f"{PAGE}?{query}")
    files = {"one": one, "two": two, "bare": bare}
    assert {name for name, file in files.items() if f'id="model-{file.pk}"' in text} == found


def test_archived_presets_are_not_offered_but_have_a_page() -> None:
    preset = builders.preset("old")
    Preset.objects.filter(pk=preset.pk).update(archived_at=builders.NOON)
    assert "<code>old</code>" not in shown(signed_in("member"))
    text = shown(signed_in("member"), "/models/presets/old/")
    assert "Archived" in text
    assert "/book/?" not in text


def test_no_such_preset_is_not_found() -> None:
    Preset.objects.create(slug="empty", name="without a revision")
    for slug in ("none", "empty"):
        assert signed_in("member").get(f"/models/presets/{slug}/").status_code == 404


def edited(slug: str, **wish: object) -> None:
    """Save the preset anew as an administrator."""
    preset = Preset.objects.filter(slug=slug).first()
    file = preset.current.model_file if preset and preset.current else builders.model_file()
    save_preset(slug=slug, model_file=file, actor=builders.administrator(), **wish)  # type: ignore[arg-type]


def test_edits_are_told_flag_by_flag_to_administrators() -> None:
    edited(
        "small",
        arguments=["-c", "8192", "-fa"],
        environment={"GGML_CUDA_ENABLE_UNIFIED_MEMORY": "1"},
    )
    edited("small", arguments=["-c", "16384", "-np", "2"], aliases=["gpt-4"])
    text = shown(signed_in("administrator"), "/models/presets/small/")
    for words in (
        "-c from 8192 to 16384",
        "-fa removed",
        "-np 2 added",
        "GGML_CUDA_ENABLE_UNIFIED_MEMORY removed (was 1)",
        "the other name gpt-4 added",
        "made the preset",
        "administrator",
    ):
        assert words in text, words


def test_members_are_told_what_an_edit_was_about() -> None:
    edited("small", arguments=["-c", "8192"])
    edited("small", arguments=["-c", "16384"])
    text = shown(signed_in("member"), "/models/presets/small/")
    assert "changed the arguments" in text
    assert "16384" not in text


def test_administrators_get_a_filled_form_for_a_clone() -> None:
    builders.preset("small", arguments=["-c", "4096"], aliases=["gpt-4"])
    client = signed_in("administrator")
    text = shown(client, "/administration/presets/small/clone/")
    assert 'value="small-copy"' in text
    assert "-c 4096" in text
    assert "gpt-4" not in text
    assert 'action="/administration/presets/new/"' in text
    assert Preset.objects.count() == 1
    assert signed_in("member").get("/administration/presets/small/clone/").status_code == 403


def test_forgetting_leads_back_to_the_catalogue() -> None:
    file = builders.model_file()
    answer = signed_in("administrator").post(
        f"/administration/models/{file.pk}/forget/", {"next": PAGE}
    )
    assert answer.headers["Location"] == PAGE


def test_the_catalogue_asks_a_fixed_number_of_questions(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    client = signed_in("member")
    for number in range(3):
        lane = builders.lane()
        lane.gpus.add(builders.gpu(memory_bytes=10**9))
        preset = builders.preset(f"p{number}")
        loaded(lane, preset, 10)
        running(lane, preset, context_length=4096)
    # Session, member; lanes, cards; revisions, facts; hosts; how many, models; loads, rates
    # of requests and of tests, living servers; unread notices, announcements.
    with django_assert_num_queries(15):
        shown(client)


def test_the_page_of_a_preset_asks_a_fixed_number_of_questions(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    client = signed_in("member")
    for number in range(3):
        edited("small", arguments=["-c", str(1024 * (number + 1))])
        loaded(builders.lane(), Preset.objects.get(slug="small"), 10)
    # Session, member; preset; lanes, cards; loads, rates of requests and of tests, living
    # servers, counts; facts; revisions; unread notices, announcements.
    with django_assert_num_queries(14):
        shown(client, "/models/presets/small/")


def test_before_any_request_the_newest_test_load_tells_the_rate() -> None:
    lane, other, preset = builders.lane(), builders.lane(), builders.preset("small")
    assert preset.current is not None
    for number, speed in enumerate((11.0, 22.5, None, 0.0)):
        TestLoad.objects.create(
            lane=lane,
            revision=preset.current,
            asked_at=builders.at(number),
            ended_at=builders.at(number),
            tokens_per_second=speed,
        )
    row, empty = sorted(lane_rows(preset), key=lambda each: each.lane.pk)
    assert (row.lane, row.speed, empty.lane, empty.speed) == (lane, 22.5, other, None)
    client = signed_in("member")
    assert "22.5 tokens/s" in shown(client)
    assert "<td>22.5</td>" in shown(client, "/models/presets/small/")
    streamed(lane, preset, 100, 10)
    assert lane_rows(preset)[0].speed == pytest.approx(10, rel=0.1)


def test_old_requests_do_not_count() -> None:
    lane, preset = builders.lane(), builders.preset()
    streamed(lane, preset, 100, 1)
    newest = UsageRecord.objects.get()
    UsageRecord.objects.create(
        pk=newest.pk + preset_figures.COUNTED_REQUESTS,
        request_id="newest",
        at=builders.NOON + timedelta(days=1),
        route="chat",
        status=200,
        duration_ms=1,
    )
    assert preset_figures.speeds() == {}


def test_speeds_of_all_are_kept_for_the_catalogue_and_a_presets_page_has_the_newest() -> None:
    lane, preset = builders.lane(), builders.preset()
    client = signed_in("member")
    assert "tokens/s" not in shown(client)
    streamed(lane, preset, 100, 10)
    assert "tokens/s" not in shown(client)
    assert lane_rows(preset)[0].speed == pytest.approx(10, rel=0.1)
    forget_kept()  # a minute later
    assert "tokens/s" in shown(client)
