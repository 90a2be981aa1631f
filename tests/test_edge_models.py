"""/v1/models: what each caller can use now, what could be loaded where; both clients' shapes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.edge.catalogue import Model, Place, list_models, one_model
from gateway.edge.dialects import Dialect
from gateway.edge.model_shapes import list_body, model_body
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Caller, Route, choose
from gateway.edge.table import LaneRoute, ModelInfo, Table, digest_of
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    STRANGER,
    Running,
    bearer,
    edge_at,
    grant,
    key_of,
    lane,
    table,
    tokens,
    upstream,
)

NOW = 1000.0
CATALOGUE = {
    "qwen": ModelInfo(
        "Qwen 3", 4096, ("completion",), 10**9, 20.0, {"main": 12.5}, ("main", "spare")
    ),
    "smol": ModelInfo("SmolLM2", 1024, ("completion", "vision"), 10**8, 3.2, {}, ("spare",)),
    "coder": ModelInfo("Coder", lanes=("elsewhere",)),
}


def _caller(owner: int) -> Caller:
    return Caller(digest_of(key_of(owner).encode()))


def _table(*lanes: LaneRoute, **fields: Any) -> Table:
    given: dict[str, Any] = {"confirmed_at": NOW, "catalogue": CATALOGUE}
    return table(*lanes, **given | fields)


def _spare(**fields: Any) -> LaneRoute:
    return lane("spare", **{"upstream": None, "phase": "stopped", "target": None} | fields)


def _list(
    found: Table, owner: int = MEMBER, slug: str | None = None, now: float = NOW
) -> dict[str, Model]:
    models = list_models(found, _caller(owner), slug, now, max_age=300)
    assert not isinstance(models, EdgeRefusal), models
    return {model.slug: model for model in models}


def _places(model: Model) -> dict[str, Place]:
    return {place.lane: place for place in model.places}


def test_what_is_loaded_comes_first_then_what_a_lane_could_hold() -> None:
    models = _list(_table(lane(upstream=upstream(preset="smol"), target="smol"), _spare()))
    assert [(each.slug, each.is_loaded) for each in models.values()] == [
        ("smol", True),
        ("qwen", False),
    ]
    assert models["qwen"].aliases == ("big",)
    assert models["smol"].engine == "llama.cpp"
    assert {slug: place.phase for slug, place in _places(models["smol"]).items()} == {
        "main": "ready",
        "spare": "stopped",
    }


def test_each_lane_has_the_load_time_that_was_measured_there() -> None:
    qwen = _list(_table(lane(), _spare()))["qwen"]
    assert [place.load_seconds for place in qwen.places] == [12.5, 20.0]
    assert model_body(qwen, Dialect.OPENAI)["meta"]["load_seconds"] == 13


def test_lanes_outside_the_token_and_presets_that_only_they_can_hold_are_not_told() -> None:
    lanes = lane(), _spare(), lane("elsewhere", upstream=None, target="coder")
    mine = {"tokens": tokens(lanes=("spare",))}
    models = _list(_table(*lanes, **mine))
    assert {slug: list(_places(model)) for slug, model in models.items()} == {
        "qwen": ["spare"],
        "smol": ["spare"],
    }
    assert not models["qwen"].is_loaded
    assert "coder" in _list(_table(*lanes))


def test_a_lane_that_is_switched_off_can_hold_nothing() -> None:
    assert list(_list(_table(lane(), _spare(enabled=False)))) == ["qwen"]


def test_a_lane_that_somebody_booked_is_free_when_the_bookings_behind_are_over_too() -> None:
    slots = (
        grant(OWNER, NOW - 10, NOW + 60),
        grant(OWNER, NOW + 60, NOW + 90, preset=None),
        grant(MEMBER, NOW + 90, NOW + 120),
        grant(OWNER, NOW + 120, NOW + 600, preset="smol"),
    )
    found = _table(lane(grants=slots))
    member, owner = _list(found)["qwen"], _list(found, OWNER)["qwen"]
    assert not member.is_loaded
    assert _places(member)["main"].free_at == NOW + 90
    assert owner.is_loaded
    assert _places(owner)["main"].free_at is None
    assert _places(_list(found)["smol"])["main"].booked_at == NOW + 120


def test_a_whole_gpu_booking_keeps_even_its_owner_from_models() -> None:
    slot = grant(OWNER, NOW - 10, NOW + 60, preset=None)
    qwen = _list(_table(lane(grants=(slot,))), OWNER)["qwen"]
    assert (qwen.is_loaded, _places(qwen)["main"].free_at) == (False, NOW + 60)


def test_who_has_booked_is_not_told() -> None:
    slot = grant(OWNER, NOW - 10, NOW + 60, booking_id=4711)
    models = tuple(_list(_table(lane(grants=(slot,)))).values())
    for dialect in Dialect:
        text = str(list_body(models, dialect, {}))
        assert "4711" not in text
        assert "owner" not in text.replace("owned_by", "")


@pytest.mark.parametrize(
    ("state", "phase", "ready_at"),
    [
        ({"phase": "starting", "upstream": None, "eta": NOW + 9}, "starting", NOW + 9),
        ({"phase": "stopped", "upstream": None, "eta": NOW + 9}, "starting", NOW + 9),
        ({"phase": "failed", "upstream": None, "retry_at": NOW + 9}, "failed", None),
        ({"phase": "draining", "draining": True}, "draining", None),
        ({"upstream": upstream(preset="smol"), "draining": True}, "starting", None),
        ({"upstream": upstream(preset="smol"), "target": "smol"}, "stopped", None),
    ],
)
def test_the_phase_is_this_presets_own(
    state: dict[str, Any], phase: str, ready_at: float | None
) -> None:
    qwen = _list(_table(lane(**state)))["qwen"]
    place = _places(qwen)["main"]
    assert (place.phase, place.ready_at, place.is_loaded) == (phase, ready_at, False)
    assert not qwen.is_loaded


def test_in_a_fallback_the_default_is_marked_and_the_booked_preset_is_not_loaded() -> None:
    slot = grant(OWNER, NOW - 10, NOW + 60, preset="smol")
    models = _list(_table(lane(grants=(slot,), target="smol", is_fallback=True)), OWNER)
    assert (models["qwen"].is_loaded, models["qwen"].is_fallback) == (True, True)
    assert (models["smol"].is_loaded, models["smol"].is_fallback) == (False, False)


def test_loaded_means_that_a_request_for_this_name_alone_would_be_served() -> None:
    slot = grant(OWNER, NOW - 10, NOW + 60, preset="smol")
    own = lane("spare", upstream=upstream(preset="smol"), target="smol", grants=(slot,))
    found = _table(lane(), own)
    for owner in (OWNER, MEMBER):
        for slug, model in _list(found, owner).items():
            route = choose(found, _caller(owner), Asked(slug), NOW)
            assert model.is_loaded == isinstance(route, Route), (owner, slug)


def test_a_lanes_own_address_lists_that_lane() -> None:
    found = _table(lane(), _spare())
    assert [list(_places(each)) for each in _list(found, slug="spare").values()] == [["spare"]] * 2


@pytest.mark.parametrize("name", ["qwen", "big", "auto", ""])
def test_one_model_by_its_slug_its_alias_or_auto(name: str) -> None:
    found = _table(lane(), _spare())
    model = one_model(found, _caller(MEMBER), Asked(name), NOW, max_age=300)
    assert model == _list(found)["qwen"]


@pytest.mark.parametrize(
    ("owner", "asked", "code"),
    [
        (MEMBER, Asked("nope"), "model_not_found"),
        (MEMBER, Asked("coder"), "model_not_found"),
        (MEMBER, Asked("qwen", "nowhere"), "lane_not_found"),
        (STRANGER, Asked("qwen"), "invalid_api_key"),
        (MEMBER, Asked("auto", "spare"), "no_model_loaded"),
    ],
)
def test_one_model_that_is_not_there_is_refused(owner: int, asked: Asked, code: str) -> None:
    refusal = one_model(_table(lane(), _spare()), _caller(owner), asked, NOW, max_age=300)
    assert isinstance(refusal, EdgeRefusal)
    assert refusal.code == code


def test_openais_shape() -> None:
    slot = grant(OWNER, NOW + 90.4, NOW + 120)
    qwen = model_body(_list(_table(lane(grants=(slot,))))["qwen"], Dialect.OPENAI)
    assert {name: qwen[name] for name in ("id", "object", "owned_by", "name")} == {
        "id": "qwen",
        "object": "model",
        "owned_by": "slotserve",
        "name": "Qwen 3",
    }
    assert qwen["meta"] == {
        "preset": "qwen",
        "aliases": ("big",),
        "engine": "llama.cpp",
        "context_length": 4096,
        "capabilities": ("completion",),
        "size_bytes": 10**9,
        "loaded": True,
        "is_fallback": False,
        "load_seconds": 13,
        "lanes": [
            {
                "slug": "main",
                "phase": "ready",
                "loaded": True,
                "free_at": None,
                "booked_at": 1091,
                "ready_at": None,
                "load_seconds": 13,
            }
        ],
    }


@pytest.mark.parametrize(
    ("query", "ids", "has_more"),
    [
        ({}, "abcde", False),
        ({"limit": "2"}, "ab", True),
        ({"limit": "2", "after_id": "b"}, "cd", True),
        ({"limit": "2", "after_id": "c"}, "de", False),
        ({"limit": "2", "before_id": "d"}, "bc", True),
        ({"limit": "2", "before_id": "c"}, "ab", False),
        ({"after_id": "bb"}, "cde", False),
        ({"after_id": "e"}, "", False),
        ({"limit": "0"}, "a", True),
        ({"limit": "99999999999"}, "abcde", False),
        ({"limit": "-1", "colour": "red"}, "abcde", False),
    ],
)
def test_anthropics_pages(query: dict[str, str], ids: str, has_more: bool) -> None:
    catalogue = {slug: ModelInfo(slug.upper(), lanes=("main",)) for slug in "abcde"}
    models = list(_list(_table(lane(upstream=None, target=None), catalogue=catalogue)).values())
    body = list_body(models[::-1], Dialect.ANTHROPIC, query)
    assert [each["id"] for each in body["data"]] == list(ids)
    assert (body["first_id"], body["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))
    assert body["has_more"] is has_more


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        await running.publish(lane(), _spare(target="smol"))
        yield running


@pytest.mark.valkey
async def test_head_answers_as_get_without_a_body(edge: Running) -> None:
    for path in ("/v1/models", "/v1/models/qwen", "/lanes/main/v1/models"):
        got = await edge.client.get(path, headers=bearer(MEMBER))
        head = await edge.client.head(path, headers=bearer(MEMBER))
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(got.content))


@pytest.mark.valkey
async def test_who_names_anthropics_version_gets_its_shape_and_its_errors(edge: Running) -> None:
    headers = bearer(MEMBER) | {"anthropic-version": "2023-06-01"}
    listed = (await edge.client.get("/v1/models?limit=1", headers=headers)).json()
    assert ([each["id"] for each in listed["data"]], listed["has_more"]) == (["qwen"], True)
    one = (await edge.client.get("/v1/models/big", headers=headers)).json()
    assert (one["type"], one["id"], one["display_name"]) == ("model", "qwen", "qwen")
    for path, status in (("/v1/models/nope", 404), ("/v1/nothing", 404)):
        answer = await edge.client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (status, "error")
        assert answer.json()["error"]["type"] == "not_found_error"
    answer = await edge.client.get("/v1/models", headers={"anthropic-version": "x"})
    assert answer.json()["error"]["type"] == "authentication_error"
