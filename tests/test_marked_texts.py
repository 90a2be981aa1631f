"""What people read goes through gettext: templates by their source, refusals by their code."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.marked_templates import unmarked

ROOT = Path(__file__).parent.parent
APPS = ("lanes", "bookings", "notices", "gateway", "slotserve")
REFUSALS = {"Refusal": 1, "SlotTaken": 1, "RulesBroken": 1, "Offering": 1}
OF_CLASSES = "allauth/elements/button.html"  # put together of parts that are no language
TEMPLATES = sorted(set((ROOT / "templates").rglob("*.html")) - {ROOT / "templates" / OF_CLASSES})


def name_of(template: Path) -> str:
    return template.relative_to(ROOT / "templates").as_posix()


@pytest.mark.parametrize("template", TEMPLATES, ids=name_of)
def test_a_template_holds_no_unmarked_text(template: Path) -> None:
    assert unmarked(template.read_text()) == []


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<p>Hello there</p>", ["Hello there"]),
        ('<p>{% translate "Hello" %} · {{ name }}</p>', []),
        ("{% blocktranslate with a=b %}Hello {{ a }}{% endblocktranslate %} again", ["again"]),
        ('<a title="{{ x }} is here">{{ y }}</a>', ["is here"]),
        ('<a data-confirm="{% translate "Sure?" %}" data-live="gpus:x">SlotServe</a>', []),
        ('<input type="submit" value="Send"><input value="typed">', ["Send"]),
        ('{{ x|default:"nothing" }}{{ y|default:_("nothing") }}', ["nothing"]),
        ('{% include "_error.html" with words="Go back now" %}', ["Go back now"]),
        ("<code>python manage.py</code><script>let word</script>5 &times; 3", []),
        ("{# a note #}{% comment %}a note{% endcomment %}<!-- a note -->", []),
        ("{% if a > b %}<b>bigger</b>{% endif %}", ["bigger"]),
    ],
)
def test_texts_are_found(source: str, texts: list[str]) -> None:
    assert unmarked(source) == texts


def refusals_unmarked(source: str) -> Iterator[int]:
    """The lines of refusals whose sentence is a plain text."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        place = REFUSALS.get(node.func.id)
        if place is None or len(node.args) <= place:
            continue
        sentence = node.args[place]
        is_text = isinstance(sentence, ast.Constant) and bool(sentence.value)
        if is_text or isinstance(sentence, ast.JoinedStr):
            yield node.lineno


def test_refusals_are_said() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for app in APPS
        for path in sorted((ROOT / app).rglob("*.py"))
        for line in refusals_unmarked(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('Refusal("busy", "Try again.")', [1]),
        ('\nRefusal("busy", f"{x} is busy.")', [2]),
        ('Refusal("busy", said("{x} is busy.", x=x))', []),
        ('SlotTaken("taken", words)', []),
    ],
)
def test_plain_refusals_are_found(source: str, lines: list[int]) -> None:
    assert list(refusals_unmarked(source)) == lines
