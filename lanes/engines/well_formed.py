"""Arguments and environments as a form or a client says them: well-formed texts, or a refusal."""

import re
import shlex
from collections.abc import Iterable, Mapping

from lanes.refusals import Refusal
from wire.words import said

MOST_ARGUMENTS = 200
MOST_VARIABLES = 50
MOST_CHARACTERS = 4096
MOST_IMAGE = 300
# Registry and path, tag, digest, as the distribution project's reference has them.
_IMAGE = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?/)?"
    r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_PLAIN = re.compile(r"[\w@%+=:,./${}-]+", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def split_line(text: str) -> list[str] | Refusal:
    """One line of a form as a list of arguments; quotes group words as in a shell."""
    try:
        return shlex.split(text)
    except ValueError:
        return Refusal(
            "bad_arguments", said("A quote or a backslash at the end is not closed: close it.")
        )


def join_line(words: Iterable[str]) -> str:
    """Arguments as one line of a form: quotes only where `split_line` needs them."""
    return " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words)


def check_arguments(value: object) -> list[str] | Refusal:
    """The arguments as a list of texts, or what is wrong with them."""
    if not isinstance(value, list | tuple):
        return Refusal(
            "bad_arguments", said('Arguments are a list of texts, such as ["-c", "4096"].')
        )
    if len(value) > MOST_ARGUMENTS:
        return Refusal(
            "bad_arguments",
            said("At most {most} arguments are possible.", most=MOST_ARGUMENTS),
        )
    for position, item in enumerate(value, start=1):
        problem = _text_problem(item)
        if problem:
            return Refusal(
                "bad_arguments",
                said("Argument {position} {problem}", position=position, problem=problem),
            )
    return list(value)


def check_environment(value: object) -> dict[str, str] | Refusal:
    """The environment as names and texts, or what is wrong with it."""
    if not isinstance(value, Mapping):
        return Refusal(
            "bad_environment", said('The environment is names and texts: {{"NAME": "value"}}.')
        )
    if len(value) > MOST_VARIABLES:
        return Refusal(
            "bad_environment",
            said("At most {most} variables are possible.", most=MOST_VARIABLES),
        )
    for name, text in value.items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            return Refusal("bad_environment", said("{name!r} is no name of a variable.", name=name))
        problem = _text_problem(text)
        if problem:
            return Refusal(
                "bad_environment", said("The value of {name} {problem}", name=name, problem=problem)
            )
    return dict(value)


def check_image(value: object) -> str | Refusal:
    """The name of a container's image, empty for none, or what is wrong with it."""
    text = value.strip() if isinstance(value, str) else value
    if text is None or text == "":
        return ""
    if isinstance(text, str) and len(text) <= MOST_IMAGE and _IMAGE.fullmatch(text):
        return text
    words = said(
        "An image is a name such as vllm/vllm-openai:v0.11.0 or registry.lan:5000/llama@sha256:…, "
        "in small letters."
    )
    return Refusal("bad_image", words)


def _text_problem(item: object) -> str | None:
    if not isinstance(item, str):
        return said("is not a text: put it in quotes.")
    if len(item) > MOST_CHARACTERS:
        return said("is longer than {most} characters.", most=MOST_CHARACTERS)
    if "\0" in item or any("\ud800" <= character <= "\udfff" for character in item):
        return said("has a character that no command line can carry.")
    return None
