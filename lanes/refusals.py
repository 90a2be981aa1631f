"""What a service answers when it will not do what was asked: a value, not an exception."""

from dataclasses import dataclass

from lanes.telling import tell
from wire.words import said


@dataclass(frozen=True, slots=True)
class Refusal:
    """A short code for programs and a sentence for people that says what to do.

    The sentence is made by `wire.words.said`, which tells it in each reader's language, or by
    gettext within the request that asked.
    """

    code: str
    sentence: str

    @property
    def words(self) -> str:
        """The sentence in the language that is in force."""
        return tell(self.sentence)


NOT_ADMINISTRATOR = Refusal("not_administrator", said("This is for administrators."))
