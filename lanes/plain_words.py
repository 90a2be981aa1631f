"""What frameworks say of wrong values, in sentences that tell what to do. Pure."""

import re
from collections.abc import Callable

_Reword = str | Callable[[re.Match[str]], str]


def plain(words: str) -> str:
    """The sentence for this one of Django or Django REST framework; others stay as they are."""
    for pattern, sentence in _SENTENCES:
        match = pattern.fullmatch(words)
        if match:
            return match.expand(sentence) if isinstance(sentence, str) else sentence(match)
    return words


def _row_name(match: re.Match[str]) -> str:
    """A class's name as people write it: model file for ModelFile."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", match[1]).lower()


def _no_row(match: re.Match[str]) -> str:
    return f"There is no such {_row_name(match)}: look into the list for those that there are."


def _row_exists(match: re.Match[str]) -> str:
    return f"There is a {_row_name(match)} of this {match[2].lower()} already: take another."


_SENTENCES: tuple[tuple[re.Pattern[str], _Reword], ...] = tuple(
    (re.compile(pattern, re.DOTALL), sentence)
    for pattern, sentence in (
        (r"No (\w+) matches the given query\.", _no_row),
        (r"(\w+) with this (\w+) already exists\.", _row_exists),
        (
            r'Invalid pk "(.*)" - object does not exist\.',
            r"There is none with the number \1: look into the list for those that there are.",
        ),
        (r"Incorrect type\. Expected pk value, received \w+\.", "Give its number."),
        (
            r"Object with \w+=(.*) does not exist\.",
            r"There is none of the name \1: look into the list for those that there are.",
        ),
        (r"Invalid value\.", "Give its name, in quotes."),
        (
            r"Invalid data\. Expected a dictionary, but got \w+\.",
            'Send one JSON object, such as {"name": "value"}.',
        ),
        (r"Ensure this value is greater than or equal to (\S+)\.", r"Give \1 or more."),
        (r"Ensure this value is less than or equal to (\S+)\.", r"Give \1 or less."),
        (
            r"Ensure this field has no more than (\d+) characters\.",
            r"Give at most \1 characters.",
        ),
        (
            r"Ensure this value has at most (\d+) characters? \(it has (\d+)\)\.",
            r"Give at most \1 characters: these are \2.",
        ),
        (r'"(.*)" is not a valid choice\.', r"\1 is not possible here: see /api/v1/docs/."),
        (
            r"Select a valid choice\. .* is not one of the available choices\.",
            "This is not offered, or no longer: choose another.",
        ),
        (r"use small letters(.*[^.])", r"Use small letters\1."),
        (r"JSON parse error - (.*)", r"This body is not JSON: \1."),
        (r'Method "(.*)" not allowed\.', r"\1 does nothing at this address: see /api/v1/docs/."),
        (r"This field may not be null\.", "This may not be null: give a value, or leave it out."),
        (r"This field may not be blank\.", "This may not be empty."),
        (r"A valid integer is required\.", "Give a whole number."),
        (r"Not a valid string\.", "Give a text, in quotes."),
        (r"Must be a valid boolean\.", "Give true or false."),
        (r'Expected a list of items but got type "\w+"\.', "Give a list, such as []."),
        (
            r'Expected a dictionary of items but got type "\w+"\.',
            'Give names and values, such as {"name": "value"}.',
        ),
        (
            r'Unsupported media type ".*" in request\.',
            "Send JSON, with the header Content-Type: application/json.",
        ),
    )
)
