"""REST bodies and addresses that say what nobody reads, and sentences for what is wrong."""

import inspect
import re
from typing import Any

import pytest
from rest_framework import serializers
from rest_framework.test import APIClient

from bookings.models import Booking
from lanes.plain_words import plain
from slotserve.api import bookings, hosts, lane_serializers, limits, models, presets, tokens
from slotserve.api.bodies import StrictBody
from slotserve.web.administration_forms import LaneForm
from tests import builders
from tests.test_api_bookings import signed_in

BOOKINGS, PRESETS, LANES = "/api/v1/bookings/", "/api/v1/presets/", "/api/v1/lanes/"
END = "2030-01-15T14:00:00Z"


@pytest.fixture
def client() -> APIClient:
    return signed_in(builders.administrator())


def wrong(answer: Any) -> dict[str, str]:
    """The fields of a 400."""
    assert answer.status_code == 400, answer.json()
    assert answer.json()["code"] == "invalid"
    return dict(answer.json()["fields"])


@pytest.mark.django_db
def test_a_misspelt_start_books_nothing(client: APIClient) -> None:
    body = {"lane": builders.lane().slug, "kind": "gpu", "strat": END, "end": "soon"}
    fields = wrong(client.post(BOOKINGS, body, format="json"))
    assert fields["strat"] == "There is no field of this name: did you mean start?"
    assert "end" in fields
    assert not Booking.objects.exists()


@pytest.mark.django_db
def test_what_cannot_be_changed_is_said(client: APIClient) -> None:
    builders.preset("small")
    refused = wrong(client.patch(f"{PRESETS}small/", {"slug": "large"}, format="json"))
    assert "keeps its name" in refused["slug"]
    assert client.patch(f"{PRESETS}small/", {"slug": "small"}, format="json").status_code == 200
    booking = builders.booking()
    refused = wrong(client.patch(f"{BOOKINGS}{booking.pk}/", {"purpose": "fun"}, format="json"))
    assert refused == {"purpose": "This cannot be changed: leave it out."}


@pytest.mark.django_db
def test_a_wrong_choice_is_told_the_right_ones(client: APIClient) -> None:
    body = {"lane": builders.lane().slug, "kind": "gpus", "end": END}
    assert wrong(client.post(BOOKINGS, body, format="json")) == {
        "kind": "gpus is none of model, gpu."
    }


@pytest.mark.django_db
def test_a_release_takes_no_end(client: APIClient) -> None:
    booking = builders.booking()
    assert wrong(
        client.post(f"{BOOKINGS}{booking.pk}/release/", {"end": END}, format="json")
    ).keys() == {"end"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "name"),
    [
        (f"{BOOKINGS}?lane=nope", "lane"),
        (f"{BOOKINGS}?page=999", "page"),
        (f"{BOOKINGS}?form={END}", "form"),
        ("/api/v1/presets/?lane=x", "lane"),
    ],
)
def test_what_an_address_asks_in_vain_is_refused(
    client: APIClient, address: str, name: str
) -> None:
    assert wrong(client.get(address)).keys() == {name}


@pytest.mark.django_db
def test_a_bad_short_name_is_told_with_all_that_is_wrong(client: APIClient) -> None:
    body = {"slug": "A B", "host": "nowhere", "name": "x"}
    assert wrong(client.post(LANES, body, format="json")).keys() == {"slug", "host"}
    form = LaneForm({"slug": "A B", "host": "nowhere"}, lane=None)
    assert {"slug", "host", "name"} <= form.errors.keys()


@pytest.mark.django_db
def test_no_answer_speaks_as_a_framework_does(client: APIClient) -> None:
    builders.lane("main")
    answers = [
        client.post(PRESETS, {"slug": "x", "model_id": 999}, format="json"),
        client.post(BOOKINGS, {"lane": "nope", "preset": "nope", "end": END}, format="json"),
        client.post(BOOKINGS, [1], format="json"),
        client.get("/api/v1/models/999/"),
        client.post(LANES, {"slug": "main", "host": builders.host().key}, format="json"),
        client.post("/api/v1/tokens/", {"name": "x", "requests_per_minute": 0}, format="json"),
    ]
    words = " ".join(answer.content.decode() for answer in answers)
    for raw in ("pk", "slug=", "non_field", "dictionary", "query", "Slug", "Ensure", "ModelFile"):
        assert raw not in words, words
    assert "Give 1 or more." in words


@pytest.mark.django_db
def test_forms_speak_plainly_too() -> None:
    form = LaneForm({"slug": "x" * 64, "name": "x", "host": "nowhere"}, lane=None)
    words = " ".join(str(text) for texts in form.errors.values() for text in texts)
    assert "Give at most 63 characters: these are 64." in words
    assert "choose another" in words


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ("No Booking matches the given query.", "There is no such booking"),
        ("Lane with this Slug already exists.", "There is a lane of this slug already"),
        ('Method "PUT" not allowed.', "PUT does nothing at this address"),
        ("Ensure this value is less than or equal to 9.", "Give 9 or less."),
        ("A booking must end after it starts.", "A booking must end after it starts."),
    ],
)
def test_sentences(raw: str, sentence: str) -> None:
    assert plain(raw).startswith(sentence)


@pytest.mark.parametrize(
    "module", [bookings, hosts, lane_serializers, limits, models, presets, tokens]
)
def test_all_that_reads_a_body_is_strict(module: Any) -> None:
    source = inspect.getsource(module)
    readers = [
        each
        for name, each in vars(module).items()
        if isinstance(each, type)
        and issubclass(each, serializers.BaseSerializer)
        and re.search(rf"\b{name}\(data=request.data", source)
    ]
    assert all(issubclass(each, StrictBody) for each in readers)


@pytest.mark.django_db
def test_the_log_names_why_a_body_was_refused(
    client: APIClient, caplog: pytest.LogCaptureFixture
) -> None:
    client.post(BOOKINGS, {"strat": "secret"}, format="json")
    assert "refused POST '/api/v1/bookings/': 'invalid (lane, end, strat)'" in caplog.text
    assert "secret" not in caplog.text
