"""The forms on the product's pages as a browser would send them, and what their addresses read."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

from django.http import QueryDict
from django.test import Client
from django.urls import Resolver404, resolve

from tests import audiences
from tests.audiences import ADMINISTRATORS, EVERYBODY, MEMBERS
from tests.every_page import ADMINISTRATOR, NOBODY, PAGES, Site
from tests.hostile import Watch, encoded

USUAL = {  # of what a page leaves empty
    "number": "1",
    "email": "somebody@example.org",
    "date": "2031-01-01",
    "datetime-local": "2031-01-01T10:00",
    "time": "10:00",
    "url": "https://example.org/x",
}
ENDLESS = {"events"}  # answers for as long as somebody listens
FORM = "application/x-www-form-urlencoded"
NO_FIELDS = ("submit", "reset", "button", "image", "file")


@dataclass
class Form:
    """Where it is sent, how, and its fields with what they hold."""

    action: str
    method: str
    fields: list[tuple[str, str]] = field(default_factory=list)


class Forms(HTMLParser):
    """Of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []
        self.select = ""
        self.area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a form or one of its fields."""
        said = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(Form(said.get("action", ""), said.get("method", "get").lower()))
        name = said.get("name", "")
        if not self.found or (tag != "option" and not name):
            return
        if tag == "input" and said.get("type", "text") not in NO_FIELDS:
            self._add(name, said.get("value") or USUAL.get(said.get("type", ""), "x"))
        elif tag == "button":
            self._add(name, said.get("value", ""))
        elif tag == "textarea":
            self._add(name, "x")
        elif tag == "select":
            self.select = name
        elif tag == "option" and self.select and said.get("value"):
            self._add(self.select, said["value"])

    def handle_endtag(self, tag: str) -> None:
        """A list of choices has ended."""
        if tag == "select":
            self.select = ""

    def _add(self, name: str, value: str) -> None:
        """The first of several with one name counts: one radio button, one choice."""
        form = self.found[-1]
        if name not in dict(form.fields) and name != "csrfmiddlewaretoken":
            form.fields.append((name, value))


def forms_of(site: Site) -> dict[tuple[str, str], dict[str, str]]:
    """What is sent from pages: the fields, by path and method."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for look in PAGES:
        page = site.address(look)
        answer = site.clients[look.who].get(page)
        for form in _read(answer.content.decode()):
            path = urlsplit(urljoin(page, form.action)).path
            key = (path, form.method)
            if len(form.fields) >= len(found.get(key, ())):
                found[key] = dict(form.fields) | found.get(key, {})
    return found


def _read(page: str) -> Iterator[Form]:
    reader = Forms()
    reader.feed(page)
    yield from reader.found


def name_of(path: str) -> str:
    """Of the address's URL; empty where nothing is."""
    try:
        return resolve(path).url_name or ""
    except Resolver404:
        return ""


@dataclass(frozen=True, slots=True)
class Target:
    """One method of an address, by its URL's name, and its fields with what they usually hold."""

    name: str
    path: str
    method: str
    usual: dict[str, str]

    def send(self, watch: Watch, client: Client, **changed: str) -> Any:
        """The answer to its fields, some of them changed."""
        text = encoded((self.usual | changed).items())
        if self.method == "get":
            return watch.send(client, "GET", f"{self.path}?{text}", "", FORM)
        return watch.send(client, "POST", self.path, text, FORM)


def targets(site: Site) -> Iterator[Target]:
    """All addresses of pages, and where their forms are sent."""
    forms = forms_of(site)
    paths = {path: name_of(path) for path, _ in forms if not path.startswith("/api/")}
    for name in sorted(EVERYBODY | MEMBERS | ADMINISTRATORS):
        paths.setdefault(audiences.address(site, name), name)
    for path, name in sorted(paths.items()):
        for method in ("get", "post") if name not in ENDLESS else ():
            target = Target(name, path, method, forms.get((path, method), {}))
            asked = dict.fromkeys(_asked(site, target), "1")
            yield Target(name, path, method, asked | target.usual)


def _asked(site: Site, target: Target) -> set[str]:
    """The names that are looked for when it is sent as usual, and when nothing is said."""
    with asked_for() as asked:
        for who in (ADMINISTRATOR, NOBODY) if target.name in EVERYBODY else (ADMINISTRATOR,):
            for usual in {}, target.usual:
                one = Target(target.name, target.path, target.method, usual)
                one.send(Watch(), site.clients[who])
    return asked


@contextlib.contextmanager
def asked_for() -> Iterator[set[str]]:
    """The names that are looked for meanwhile in queries and forms."""
    names: set[str] = set()
    kept = {name: getattr(QueryDict, name) for name in ("__getitem__", "getlist", "__contains__")}

    def noting(reads: Any) -> Any:
        def read(self: QueryDict, key: Any, *args: Any, **kwargs: Any) -> Any:
            names.add(str(key))
            return reads(self, key, *args, **kwargs)

        return read

    try:
        for name, reads in kept.items():
            setattr(QueryDict, name, noting(reads))
        yield names
    finally:
        for name, reads in kept.items():
            setattr(QueryDict, name, reads)
        names.discard("csrfmiddlewaretoken")
