"""A model's own rules as a refusal."""

from django.core.exceptions import ValidationError
from django.db.models import Model

from lanes.plain_words import plain
from lanes.refusals import Refusal
from wire.words import said


def refusal_of(row: Model) -> Refusal | None:
    """What the model's validators and constraints say against this row, or None."""
    try:
        row.full_clean()
    except ValidationError as error:
        words = [
            f"{field.replace('_', ' ')}: {plain(text)}" if field != "__all__" else plain(text)
            for field, texts in error.message_dict.items()
            for text in texts
        ]
        return Refusal("invalid", " ".join(words))
    return None


def not_administrator() -> Refusal:
    """What a member hears who asks for an administrator's work."""
    return Refusal("not_administrator", said("Only administrators may do this: ask one of them."))
