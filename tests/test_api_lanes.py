"""REST: lanes, presets, tokens, me, schema."""

from datetime import timedelta
from typing import Any

import pytest
from drf_spectacular.validation import validate_schema
from rest_framework.test import APIClient

from gateway.models import ApiToken
from lanes import clock
from lanes.engines.options import Options
from lanes.models import Lane, Order, Phase, Preset, ReloadRequest, Runtime
from tests import builders
from tests.test_api_bookings import signed_in, with_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def member() -> APIClient:
    return signed_in(builders.person("member"))


@pytest.fixture
def administrator() -> APIClient:
    return signed_in(builders.administrator())


def starting_lane() -> Lane:
    preset = builders.preset("smollm2")
    lane = builders.lane("demo", default_preset=preset)
    now = clock.database_now()
    assert preset.current is not None
    common: dict[str, Any] = {"lane": lane, "generation": 1}
    Order.objects.create(
        **common, target=preset.current, ordered_at=now, decided_at=now, sentence="the default"
    )
    Runtime.objects.create(
        **common,
        revision=preset.current,
        phase=Phase.STARTING,
        phase_since=now,
        started_at=now - timedelta(seconds=5),
        address="127.0.0.1",
        port=18100,
        pid=4242,
        sealed_key="sealed",
    )
    return lane


def test_a_lane_shows_its_decision_and_the_progress_of_its_load(member: APIClient) -> None:
    starting_lane()
    shown = member.get("/api/v1/lanes/demo/").data
    assert shown["decision"]["sentence"] == "the default"
    assert shown["decision"]["target"] == "smollm2"
    assert shown["runtime"]["phase"] == "starting"
    assert 0 < shown["runtime"]["progress"] < 1
    assert "pid" not in shown["runtime"]


def test_pid_and_port_are_for_administrators(administrator: APIClient) -> None:
    starting_lane()
    runtime = administrator.get("/api/v1/lanes/demo/").data["runtime"]
    assert (runtime["pid"], runtime["port"]) == (4242, 18100)


def test_a_ready_server_shows_what_it_can_do(member: APIClient) -> None:
    lane = starting_lane()
    told = {"slots": 4, "context_length": 1024, "capabilities": ["completion"]}
    Runtime.objects.filter(lane=lane).update(phase=Phase.READY, **told)
    runtime = member.get("/api/v1/lanes/demo/").data["runtime"]
    assert {name: runtime[name] for name in told} == told
    builders.lane("idle")
    idle = member.get("/api/v1/lanes/idle/").data["runtime"]
    assert (idle["slots"], idle["context_length"], idle["capabilities"]) == (None, None, [])


def test_lanes_are_listed_in_a_fixed_number_of_queries(
    member: APIClient, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        builders.booking(lane=builders.lane(f"lane-{number}"))
    # session, user, now, count, lanes, gpus, orders, runtimes (2), bookings, choices, estimates
    with django_assert_max_num_queries(14):
        assert member.get("/api/v1/lanes/").data["count"] == 5


def test_a_lane_between_bookings_shows_the_next_one(member: APIClient) -> None:
    booking = builders.booking(lane=builders.lane("demo"))
    shown = member.get("/api/v1/lanes/demo/").data
    assert shown["booking"] is None
    assert shown["next"]["id"] == booking.pk
    assert shown["runtime"]["phase"] == "stopped"


def test_a_choice_says_when_it_ends(administrator: APIClient) -> None:
    starting_lane()
    until = (clock.database_now() + timedelta(hours=2)).isoformat()
    answer = administrator.post(
        "/api/v1/lanes/demo/choose/", {"preset": None, "until": until}, format="json"
    )
    assert answer.status_code == 200, answer.data
    assert answer.data["ends_at"]
    assert administrator.post("/api/v1/lanes/demo/clear-choice/").status_code == 200


@pytest.mark.parametrize("call", ["choose", "clear-choice", "reload"])
def test_members_may_not_administer_a_lane(member: APIClient, call: str) -> None:
    starting_lane()
    until = (clock.database_now() + timedelta(hours=2)).isoformat()
    body = {"preset": None, "until": until} if call == "choose" else {}
    answer = member.post(f"/api/v1/lanes/demo/{call}/", body, format="json")
    assert (answer.status_code, answer.data["code"]) == (403, "not_administrator")
    assert not ReloadRequest.objects.exists()


def test_administrators_read_events_and_explanation(administrator: APIClient) -> None:
    starting_lane()
    for call in ("events", "explain"):
        assert administrator.get(f"/api/v1/lanes/demo/{call}/").status_code == 200, call
    for at in ("now", "9999-12-31T23:59:59Z"):
        assert administrator.get(f"/api/v1/lanes/demo/explain/?at={at}").status_code == 400


def test_a_choice_in_the_past_is_refused(administrator: APIClient) -> None:
    starting_lane()
    body = {"preset": "smollm2", "until": "2020-01-01T00:00Z"}
    answer = administrator.post("/api/v1/lanes/demo/choose/", body, format="json")
    assert answer.status_code == 400


def test_an_unknown_address_answers_in_json(member: APIClient) -> None:
    for method in ("get", "post", "delete"):
        answer = getattr(member, method)("/api/v1/nothing/here")
        assert (answer.status_code, answer.data["code"]) == (404, "not_found")


def test_an_administrator_makes_and_edits_a_lane(administrator: APIClient) -> None:
    builders.host("machine")
    made = administrator.post(
        "/api/v1/lanes/", {"slug": "new", "name": "New", "host": "machine"}, format="json"
    )
    assert made.status_code == 201, made.data
    edited = administrator.patch("/api/v1/lanes/new/", {"enabled": False}, format="json")
    assert edited.data["enabled"] is False
    assert edited.data["name"] == "New"
    assert administrator.delete("/api/v1/lanes/new/").status_code == 204


def test_a_preset_says_which_arguments_were_left_out(administrator: APIClient) -> None:
    body = {"slug": "tiny", "name": "Tiny", "model_id": builders.model_file().pk}
    made = administrator.post(
        "/api/v1/presets/", {**body, "arguments": ["-c", "512", "--port", "80"]}, format="json"
    )
    assert made.status_code == 201, made.data
    assert made.data["arguments"] == ["-c", "512"]
    assert "--port" in made.data["notes"][0]
    edited = administrator.patch(
        "/api/v1/presets/tiny/", {"arguments": ["-c", "1024"]}, format="json"
    )
    assert (edited.data["revision"], edited.data["name"]) == (2, "Tiny")


@pytest.mark.parametrize("arguments", ["-c 512", [1], {"a": 1}, ["x" * 100_000], ["\x00"]])
def test_arguments_that_are_no_list_of_words_are_refused(
    administrator: APIClient, arguments: object
) -> None:
    body = {"slug": "tiny", "name": "Tiny", "model_id": builders.model_file().pk}
    made = administrator.post("/api/v1/presets/", {**body, "arguments": arguments}, format="json")
    assert made.status_code == 400
    assert not Preset.objects.filter(slug="tiny").exists()


def test_members_see_presets_without_their_arguments(member: APIClient) -> None:
    builders.preset("tiny", arguments=["--secret"])
    shown = member.get("/api/v1/presets/tiny/").data
    assert shown["slug"] == "tiny"
    assert "arguments" not in shown


def test_a_tokens_text_is_shown_once(member: APIClient) -> None:
    made = member.post("/api/v1/tokens/", {"name": "laptop"}, format="json")
    assert made.status_code == 201, made.data
    assert made.data["token"].startswith("ss_")
    (listed,) = member.get("/api/v1/tokens/").data["results"]
    assert "token" not in listed
    assert made.data["token"] not in str(ApiToken.objects.values())


def test_a_token_is_revoked_by_its_owner_alone(member: APIClient) -> None:
    made = member.post("/api/v1/tokens/", {"name": "laptop"}, format="json").data
    stranger = signed_in(builders.person("stranger"))
    assert stranger.delete(f"/api/v1/tokens/{made['id']}/").status_code == 404
    assert member.delete(f"/api/v1/tokens/{made['id']}/").status_code == 204


@pytest.mark.parametrize(
    ("person", "words"),
    [("owner", "This is for administrators."), ("administrator", "make one that has it")],
)
def test_who_is_no_administrator_is_not_sent_for_a_scope(person: str, words: str) -> None:
    lane, user = builders.lane(), builders.person(person, is_staff=person == "administrator")
    answer = with_token(user, "bookings", "read").post(f"/api/v1/lanes/{lane.slug}/reload/")
    assert answer.status_code == 403
    assert words in answer.data["detail"]


def test_a_token_without_scope_admin_makes_no_tokens() -> None:
    client = with_token(builders.person("owner"), "bookings", "read", "inference")
    answer = client.post("/api/v1/tokens/", {"name": "more"}, format="json")
    assert answer.status_code == 403


def test_me_says_who_calls(member: APIClient) -> None:
    shown = member.get("/api/v1/me/").data
    assert (shown["username"], shown["is_administrator"]) == ("member", False)


def test_the_schema_is_valid_openapi(member: APIClient) -> None:
    answer = member.get("/api/v1/schema/?format=json")
    validate_schema(answer.json())  # type: ignore[no-untyped-call]


def test_the_page_of_the_schema_lists_every_group(member: APIClient) -> None:
    page = member.get("/api/v1/docs/").content.decode()
    for group in ("lanes", "bookings", "presets", "tokens", "usage", "models"):
        assert f"/api/v1/{group}/" in page


def test_paths_of_model_files_are_for_administrators(
    member: APIClient, administrator: APIClient
) -> None:
    made = builders.model_file(path="/secret/place.gguf")
    (seen,) = member.get("/api/v1/models/").data["results"]
    assert (seen["name"], "path" in seen) == (made.name, False)
    (whole,) = administrator.get("/api/v1/models/").data["results"]
    assert whole["path"] == "/secret/place.gguf"


def test_the_schema_says_what_a_preset_may_say(member: APIClient) -> None:
    shapes = member.get("/api/v1/schema/?format=json").json()["components"]["schemas"]
    for name in ("PresetWrite", "PatchedPresetWrite", "Preset"):
        said = shapes[name]["properties"]
        options = said["options"].get("$ref") or said["options"]["allOf"][0]["$ref"]
        assert options.endswith("/Options")
        assert said["arguments"]["items"] == said["aliases"]["items"] == {"type": "string"}
        assert said["environment"]["additionalProperties"] == {"type": "string"}
    assert shapes["Options"]["properties"].keys() == set(Options.__dataclass_fields__)
