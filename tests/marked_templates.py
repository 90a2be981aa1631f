"""Finds what people read in a template's source outside translate and blocktranslate."""

import re
from collections.abc import Iterator

ATTRIBUTES = ("title", "aria-label", "placeholder", "alt", "data-confirm", "data-words", "label")
SILENT = ("script", "style", "code", "pre", "kbd", "path")  # what is typed, not read as a language
SAME_EVERYWHERE = frozenset(
    [
        "SlotServe",
        "GPU",
        "GPUs",
        "CPU",
        "API",
        "REST",
        "URL",
        "JSON",
        "HTTP",
        "SSH",
        "Python",
        "OpenAI",
        "Anthropic",
        "curl",
        "GiB",
        "GB",
        "MB",
        "GHz",
        "pid",
        "SHA",
        "PID",
        "USER",
        "Valkey",
        "Grafana",
        "PDF",
        "CSV",
        "HTML",
        "OK",
        "UTC",
        "ISO",
        "FAQ",
        "CLI",
        "SDK",
        "JavaScript",
        "LoRA",
        "openai",
        "anthropic",
    ]
)
_BLOCK = re.compile(r"{%-?\s*(blocktranslate|comment)\b.*?%}.*?{%\s*end\1\s*%}", re.DOTALL)
_CLASSES = re.compile(r"{% block \w*_class %}.*?{% endblock %}")
_TAG = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}", re.DOTALL)
_HTML = re.compile(r"<!--.*?-->|<!?/?([a-zA-Z][\w-]*)((?:\"[^\"]*\"|'[^']*'|[^>\"'])*)>", re.DOTALL)
_ATTRIBUTE = re.compile(r"([\w:-]+)\s*=\s*\"([^\"]*)\"", re.DOTALL)
_ARGUMENT = re.compile(r"(?:default|default_if_none|yesno|join|pluralize):\"([^\"]*)\"")
_PARAMETER = re.compile(r"\w+=\"([^\"]*\s[^\"]*)\"")
_WORD = re.compile(r"[^\W\d_]{2,}")
_SENTENCE = re.compile(r"^[A-Z{].* |[.?!]$")  # rather than a list of names
_GAP = "\0"


def unmarked(source: str) -> list[str]:
    """The texts, in their order: pieces between tags, and values of attributes that are read."""
    heads = _BLOCK.sub(lambda block: block[0].partition("%}")[0] + "%}", source)
    told = [text for tag in _TAG.findall(heads) for text in _of_tag(tag)]
    html = _TAG.sub(_GAP, _CLASSES.sub(_GAP, _BLOCK.sub(_GAP, source)))
    for text in [*_texts(html), *_attributes(html)]:
        told += [piece for piece in map(str.strip, text.split(_GAP)) if is_language(piece)]
    return told


def is_language(text: str) -> bool:
    """Whether it has a word that other languages say otherwise."""
    words = set(_WORD.findall(re.sub(r"&\w+;", " ", text)))
    return bool(words - SAME_EVERYWHERE)


def _of_tag(tag: str) -> Iterator[str]:
    """Texts among the arguments of filters and of include."""
    found = _ARGUMENT.findall(tag)
    if tag.startswith("{%") and tag[2:].split()[0] in ("include", "with"):
        found += _PARAMETER.findall(tag)
    yield from filter(is_language, found)


def _texts(html: str) -> Iterator[str]:
    """What stands between tags, but for silent elements."""
    at, silent = 0, ""
    for tag in _HTML.finditer(html):
        if not silent:
            yield html[at : tag.start()]
        at, name = tag.end(), (tag[1] or "").lower()
        is_end = tag[0].startswith("</")
        if silent == name and is_end:
            silent = ""
        elif not silent and name in SILENT and not is_end and not tag[0].endswith("/>"):
            silent = name
    yield html[at:]


def _attributes(html: str) -> Iterator[str]:
    for tag in _HTML.finditer(html):
        found = dict(_ATTRIBUTE.findall(tag[2] or ""))
        is_button = found.get("type") in ("submit", "button", "reset")
        for name, value in found.items():
            is_for_scripts = name.startswith("data-") and bool(_SENTENCE.search(value))
            if name in ATTRIBUTES or is_for_scripts or (name == "value" and is_button):
                yield value
