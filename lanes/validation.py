"""A model's own rules as a refusal."""

from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils.translation import gettext

from lanes.audit_words import FIELDS
from lanes.plain_words import plain
from lanes.refusals import Refusal
from wire.words import marked, said

# Columns that people fill in, as the audit trail calls them, and those that it does not tell.
LABELS = {
    **{name: label for fields in FIELDS.values() for name, label in fields.items()},
    "key": marked("key"),
    "path": marked("path"),
    "text": marked("text"),
}


def refusal_of(row: Model) -> Refusal | None:
    """What the model's validators and constraints say against this row, or None."""
    try:
        row.full_clean()
    except ValidationError as error:
        words = [
            f"{_label(field)}: {plain(text)}" if field != "__all__" else plain(text)
            for field, texts in error.message_dict.items()
            for text in texts
        ]
        return Refusal("invalid", " ".join(words))
    return None


def _label(field: str) -> str:
    """What people call a column, in their language."""
    words = field.replace("_", " ")
    return gettext(LABELS.get(field, words))


def not_administrator() -> Refusal:
    """What a member hears who asks for an administrator's work."""
    return Refusal("not_administrator", said("Only administrators may do this: ask one of them."))
