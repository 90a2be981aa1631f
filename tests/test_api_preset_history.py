"""A preset's revisions and clones through REST."""

import pytest
from django.test import Client

from lanes.models import Preset
from tests import builders
from tests.test_web_catalogue import edited
from tests.test_web_pages import signed_in

pytestmark = pytest.mark.django_db
PRESETS = "/api/v1/presets/"


def posted(client: Client, path: str, **body: object) -> tuple[int, dict[str, object]]:
    """What a POST is answered with."""
    answer = client.post(PRESETS + path, body, content_type="application/json")
    return answer.status_code, answer.json()


def test_administrators_read_what_each_revision_changed() -> None:
    edited("small", arguments=["-c", "8192"])
    edited("small", arguments=["-c", "16384"])
    second, first = signed_in("administrator").get(f"{PRESETS}small/revisions/").json()
    assert (second["number"], first["number"]) == (2, 1)
    assert second["created_by"] == "administrator"
    assert second["changes"] == [{"field": "argument", "name": "-c", "old": "8192", "new": "16384"}]
    assert (first["is_first"], first["changes"]) == (True, [])


def test_members_read_what_was_changed_without_values() -> None:
    edited("small", arguments=["-c", "8192"])
    edited("small", arguments=["-c", "16384", "-np", "2"])
    second, _ = signed_in("member").get(f"{PRESETS}small/revisions/").json()
    assert second["changes"] == [{"field": "argument", "name": "", "old": None, "new": None}]


def test_a_clone_says_the_same_under_another_name() -> None:
    builders.preset("small", arguments=["-c", "4096"], aliases=["gpt-4"])
    code, made = posted(signed_in("administrator"), "small/clone/")
    assert (code, made["slug"], made["arguments"], made["aliases"]) == (
        201,
        "small-copy",
        ["-c", "4096"],
        [],
    )
    assert posted(signed_in("administrator"), "small/clone/", slug="mine")[1]["slug"] == "mine"


def test_a_clone_is_refused() -> None:
    builders.preset("small", aliases=["gpt-4"])
    administrator = signed_in("administrator")
    assert posted(administrator, "small/clone/", slug="gpt-4")[1]["code"] == "name_taken"
    assert posted(administrator, "small/clone/", slogan="x")[1]["code"] == "invalid"
    assert posted(administrator, "none/clone/")[0] == 404
    assert posted(signed_in("member"), "small/clone/")[1]["code"] == "not_administrator"
    assert Preset.objects.count() == 1
