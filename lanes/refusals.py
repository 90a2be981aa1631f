"""What a service answers when it will not do what was asked: a value, not an exception."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """A short code for programs and a sentence for people that says what to do."""

    code: str
    words: str


NOT_ADMINISTRATOR = Refusal("not_administrator", "This is for administrators.")
