"""Sentences that are told again in another language and zone."""

import json
import pickle
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone, translation
from hypothesis import given
from hypothesis import strategies as st

from lanes import telling
from lanes.refusals import Refusal
from lanes.telling import moment, told
from wire.words import At, Day, Reader, Slot, Words, cut, kept_of, remade, retold, said, together

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
AT = At(datetime(2026, 3, 1, 14, 0, tzinfo=UTC), NOW, UTC)
GERMAN = {
    "loading {preset} for the {start} slot": "lädt {preset} für den Slot um {start}",
    "{sentence}: {why}": "{sentence}; {why}",
    "it failed {count} times": "{count}-mal gescheitert",
}


def german(text: str) -> str:
    return GERMAN.get(text, text)


def again(words: str, zone: ZoneInfo | None = None) -> str:
    """Kept as JSON, read by a German in Berlin."""
    place = zone or ZoneInfo("Europe/Berlin")
    reader = Reader(german, lambda at: at.astimezone(place).strftime("%H:%M"))
    return retold(json.loads(json.dumps(kept_of(words))), reader)


def test_a_sentence_is_an_english_string() -> None:
    words = said("loading {preset} for the {start} slot", preset="qwen", start=AT)
    assert words == "loading qwen for the 14:00 UTC slot"


def test_it_is_told_in_another_language_and_zone() -> None:
    words = said("loading {preset} for the {start} slot", preset="qwen", start=AT)
    assert again(words) == "lädt qwen für den Slot um 15:00"


def test_sentences_within_sentences_are_told_too() -> None:
    inner = said("it failed {count} times", count=3)
    assert again(said("{sentence}: {why}", sentence="x", why=inner)) == "x; 3-mal gescheitert"


def test_groups_stand_at_numbers() -> None:
    words = said("{0} of {1}", "a", "b")
    assert (words, again(words)) == ("a of b", "a of b")


def test_numbers_keep_their_format() -> None:
    words = said("after {seconds:.1f} s", seconds=1.25)
    assert (words, again(words)) == ("after 1.2 s", "after 1.2 s")
    reader = Reader(str, str, point=",")
    assert retold(json.loads(json.dumps(kept_of(words))), reader) == "after 1,2 s"


def test_what_is_no_value_of_a_sentence_stands_there_as_a_text() -> None:
    odd: list[Any] = [{"a": 1}, {}, [{}], None]
    for sent in odd:
        words = said("{sent!r} is none", sent=sent)
        assert told(words, kept_of(words)) == words == f"{str(sent)!r} is none"


def test_what_was_joined_by_hand_is_plain() -> None:
    assert kept_of(said("a") + "b") is None
    assert kept_of(f"{said('a')}") is None


def test_a_translation_that_does_not_fit_is_not_used() -> None:
    kept = said("{preset} stopped", preset="qwen").kept()
    assert retold(kept, Reader(lambda _: "{nobody} stoppte", str)) == "qwen stopped"


def test_a_sentence_that_fits_is_not_cut() -> None:
    words = said("{preset} stopped", preset="qwen")
    assert cut(words, 100) is words
    assert cut(words, 4) == "qwen"


def test_a_kept_sentence_is_remade() -> None:
    words = said("{a}: {b}", a=said("it failed {count} times", count=2), b="why")
    made = remade(str(words), json.loads(json.dumps(kept_of(words))))
    assert isinstance(made, Words)
    assert again(made) == "2-mal gescheitert: why"
    assert again(said("{sentence}: {why}", sentence=made, why="x")) == "2-mal gescheitert: why; x"


def test_it_can_be_pickled() -> None:
    words = pickle.loads(pickle.dumps(said("{preset} stopped", preset="qwen")))
    assert (words, words.text) == ("qwen stopped", "{preset} stopped")


@given(st.text(), st.text())
def test_values_are_never_read_as_texts(one: str, two: str) -> None:
    words = said("{one} and {two}", one=one, two=two)
    assert words == f"{one} and {two}"
    assert again(words) == words


@pytest.mark.parametrize(
    ("language", "zone", "expected"),
    [("en", "UTC", "2 Mar 14:00 UTC"), ("en", "America/New_York", "2 Mar 09:00 EST")],
)
def test_a_moment_is_in_the_readers_zone(
    monkeypatch: pytest.MonkeyPatch, language: str, zone: str, expected: str
) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    with translation.override(language), timezone.override(zone):
        assert moment(datetime(2026, 3, 2, 14, 0, tzinfo=UTC)) == expected


def test_plain_sentences_are_told_as_they_are() -> None:
    assert told("an older sentence", None) == "an older sentence"


def test_several_sentences_are_told_one_by_one() -> None:
    words = together("; ", [said("it failed {count} times", count=2), "plain {text}"])
    assert words == "it failed 2 times; plain {text}"
    assert again(words) == "2-mal gescheitert; plain {text}"
    assert kept_of(together("; ", [])) is None


def test_a_refusal_speaks_the_language_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Refusal("failed", said("it failed {count} times", count=2))
    assert refusal.words == "it failed 2 times"
    monkeypatch.setattr(telling, "gettext", german)
    assert refusal.words == "2-mal gescheitert"
    assert Refusal("plain", "as it is").words == "as it is"


def test_days_and_slots_are_told_with_their_dates() -> None:
    end = datetime(2026, 3, 1, 15, 0, tzinfo=UTC)
    words = said("held until {held}: {slot}", held=Day(AT.moment, UTC), slot=Slot(NOW, end, UTC))
    assert words.startswith("held until Sun 1 Mar 2026, 14:00 UTC: Sun 1 Mar 2026, 12:00 UTC ")
    kept = json.loads(json.dumps(kept_of(words)))
    with timezone.override("Europe/Berlin"), translation.override("en"):
        assert told(words, kept) == (
            "held until Sun 1 Mar 2026, 15:00 CET: Sun 1 Mar 2026, 13:00 \N{EN DASH} 16:00 CET"
        )
