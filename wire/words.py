"""Sentences that are made or kept now and read later, by people of other languages and zones. Pure.

`said("loading {preset} for the {start} slot", preset="qwen", start=At(start, now, zone))` is an
English string like any other, and remembers what it was made of, so that `retold` can say it in
another language. Cutting or joining such strings makes plain ones: put one into another as a value.
Sentences that are shown at once need none of this: they use gettext.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo

PEOPLE = frozenset(("actor", "owner", "member"))
Kept = dict[str, object]  # as JSON keeps it: {"text": …, "values": {…}}


def clock(moment: datetime, now: datetime, zone: tzinfo) -> str:
    """A time with its zone's name: "14:00 UTC"; seconds if it has any; the day unless today."""
    local, today = moment.astimezone(zone), now.astimezone(zone).date()
    words = [f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}", local.tzname() or ""]
    if local.date() != today:
        year = f" {local.year}" if local.year != today.year else ""
        words.insert(0, f"{local.day} {local:%b}{year}")
    return " ".join(words).strip()


@dataclass(frozen=True, slots=True)
class At:
    """A moment within a sentence, in English as seen at `now` from `zone`."""

    moment: datetime
    now: datetime
    zone: tzinfo

    def __str__(self) -> str:
        return clock(self.moment, self.now, self.zone)


@dataclass(frozen=True, slots=True)
class Day:
    """A moment in a sentence that may be read on another day, as a mail is: with its date."""

    moment: datetime
    zone: tzinfo

    def __str__(self) -> str:
        local = self.moment.astimezone(self.zone)
        return f"{local:%a} {local.day} {local:%b %Y, %H:%M} {local.tzname() or ''}".strip()


@dataclass(frozen=True, slots=True)
class Slot:
    """[start, end) in such a sentence, in English as in `zone`."""

    start: datetime
    end: datetime
    zone: tzinfo

    def __str__(self) -> str:
        return f"{Day(self.start, self.zone)} \N{EN DASH} {Day(self.end, self.zone)}"


Value = str | int | float | At | Day | Slot


class Words(str):
    """An English sentence that knows its text with {places} and what stands in them."""

    __slots__ = ("text", "values")
    text: str
    values: Mapping[str, object]

    def kept(self) -> Kept:
        """What `retold` needs, for JSON."""
        return {
            "text": self.text,
            "values": {name: _kept(value) for name, value in self.values.items()},
        }


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: how a text with places is in their language, and how they are told a moment, a
    person's name, which stands at one of PEOPLE, a moment with its date, a slot, and a number."""

    translate: Callable[[str], str]
    moment: Callable[[datetime], str]
    name: Callable[[str], str] = str
    day: Callable[[datetime], str] = str
    slot: Callable[[datetime, datetime], str] = "{} \N{EN DASH} {}".format
    point: str = "."  # of a number's decimals


def said(text: str, /, *groups: Value, **values: Value) -> Words:
    """The English sentence. `groups` stand at {0}, {1} …; makemessages collects `text`.

    A value of another kind, as a client may have sent it, stands there as the text it is.
    """
    named: dict[str, object] = {str(place): group for place, group in enumerate(groups)}
    known = {n: v if isinstance(v, Value) else str(v) for n, v in values.items()}
    words = Words(text.format(*map(str, groups), **{n: _spoken(v) for n, v in known.items()}))
    words.text, words.values = text, named | known
    return words


def together(between: str, sentences: Iterable[str]) -> Words:
    """Several sentences as one, each told by itself."""
    told = list(sentences)
    return said(between.join(f"{{{place}}}" for place in range(len(told))), *told)


def marked(text: str) -> str:
    """The text itself; makemessages collects it for a `said` elsewhere."""
    return text


def retold(kept: Mapping[str, object], reader: Reader) -> str:
    """A kept sentence as this reader is told it.

    Where the translation does not fit the values, as after an update, the English text is used.
    """
    text, values = str(kept["text"]), _values(kept)
    spoken = {name: _read(name, value, reader) for name, value in values.items()}
    groups = [spoken[str(place)] for place in range(len(spoken)) if str(place) in spoken]
    named = {name: value for name, value in spoken.items() if not name.isdigit()}
    for words in (reader.translate(text), text):
        try:
            return words.format(*groups, **named)
        except (IndexError, KeyError, ValueError, TypeError):
            continue
    return text


def kept_of(sentence: str) -> Kept | None:
    """What is kept of a sentence beside its English; None for a plain string, and an empty one."""
    return sentence.kept() if isinstance(sentence, Words) and sentence else None


def remade(sentence: str, kept: Kept | None) -> str:
    """A sentence that was kept, as it was when it was made."""
    if not kept:
        return sentence
    words = Words(sentence)
    words.text, words.values = str(kept["text"]), dict(_values(kept))
    return words


def cut(sentence: str, most: int) -> str:
    """The sentence, or as many characters of it; cut, it is English for everybody."""
    return sentence if len(sentence) <= most else sentence[:most]


def _spoken(value: Value) -> str | int | float:
    """As format takes it: numbers keep their own format, such as {seconds:.1f}."""
    return str(value) if isinstance(value, At | Day | Slot) else value


def _kept(value: object) -> object:
    if isinstance(value, At):
        return {"moment": value.moment.isoformat()}
    if isinstance(value, Day):
        return {"day": value.moment.isoformat()}
    if isinstance(value, Slot):
        return {"start": value.start.isoformat(), "end": value.end.isoformat()}
    return value.kept() if isinstance(value, Words) else value


def _values(kept: Mapping[str, object]) -> Mapping[str, object]:
    values = kept.get("values")
    return values if isinstance(values, Mapping) else {}


@dataclass(frozen=True, slots=True)
class _Number:
    """A number that is written as the reader writes it, by the text's own format."""

    value: float
    point: str

    def __format__(self, spec: str) -> str:
        return format(self.value, spec).replace(".", self.point)


def _read(place: str, value: object, reader: Reader) -> object:
    if isinstance(value, float):
        return _Number(value, reader.point)
    if not isinstance(value, Mapping):
        return reader.name(value) if place in PEOPLE and isinstance(value, str) else value
    if "moment" in value:
        return reader.moment(datetime.fromisoformat(str(value["moment"])))
    if "day" in value:
        return reader.day(datetime.fromisoformat(str(value["day"])))
    if "start" in value:
        return reader.slot(*(datetime.fromisoformat(str(value[each])) for each in ("start", "end")))
    return retold(value, reader)
