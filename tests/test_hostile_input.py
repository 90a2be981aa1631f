"""Every address of pages and every field of REST against values that nobody means, by each role.

Nothing is a 500, every refusal says something, and what is refused changes nothing.
"""

from collections.abc import Iterator

import pytest
from django.urls import get_resolver

from tests import audiences, hostile, hostile_forms, hostile_schema
from tests.audiences import ADMINISTRATORS, EVERYBODY, MEMBERS
from tests.every_page import ADMINISTRATOR, MEMBER, NOBODY, Site
from tests.hostile import Watch, encoded, some
from tests.hostile_forms import Target
from tests.hostile_schema import Operation

pytestmark = pytest.mark.django_db
JSON = "application/json"
LONGEST_QUERY = 10_000  # longer ones no server hands on
# How many values each field is given, and each address of whole bodies and of parts.
each_few = pytest.mark.parametrize("each", [2, pytest.param(10, marks=pytest.mark.fuzz)])
AUDIENCES = {
    ADMINISTRATOR: EVERYBODY | MEMBERS | ADMINISTRATORS,
    MEMBER: EVERYBODY | MEMBERS,
    NOBODY: EVERYBODY,
}
REST_AUDIENCES = {
    ADMINISTRATOR: {"everybody", "read", "bookings", "admin", "staff"},
    MEMBER: {"everybody", "read", "bookings", "admin"},
    NOBODY: {"everybody"},
}


@pytest.fixture
def site() -> Site:
    return hostile.made()


@each_few
def test_no_field_of_a_page_breaks_anything(site: Site, each: int) -> None:
    watch = Watch()
    targets = list(hostile_forms.targets(site))
    assert {"book", "edit-lane", "account_login", "members"} <= {one.name for one in targets}
    for who, names in AUDIENCES.items():
        for target in targets:
            is_let_in = target.name in names or not target.name
            for field in target.usual if is_let_in else [""]:
                for value in some(_texts_for(target), each, who, target.path, field):
                    target.send(watch, site.clients[who], **{field: value})
    assert not watch.wrong, "\n".join(watch.wrong)


def _texts_for(target: Target) -> Iterator[str]:
    is_query = target.method == "get"
    return (text for text in hostile.TEXTS if not is_query or len(text) < LONGEST_QUERY)


@each_few
def test_no_body_or_address_of_a_page_breaks_anything(site: Site, each: int) -> None:
    watch = Watch()
    names = sorted(EVERYBODY | MEMBERS | ADMINISTRATORS)
    for who, allowed in AUDIENCES.items():
        for name in (name for name in names if name in allowed):
            path = audiences.address(site, name)
            for kind, body in some(hostile.BODIES, each, who, name):
                watch.send(site.clients[who], "POST", path, body, kind)
            for path in some(_odd_addresses(name), each, who, name):
                for method in ("GET", "POST"):
                    watch.send(site.clients[who], method, path, "", hostile_forms.FORM)
    assert not watch.wrong, "\n".join(watch.wrong)


def _odd_addresses(name: str) -> list[str]:
    """Such an address with each of hostile.PARTS, wherever it leads then."""
    pattern = get_resolver().reverse_dict.getlist(name)[0][0][0]
    return [pattern[0] % dict.fromkeys(pattern[1], part) for part in hostile.PARTS if pattern[1]]


@each_few
def test_no_field_of_rest_breaks_anything(site: Site, each: int) -> None:
    watch = Watch()
    operations = list(hostile_schema.operations(site))
    assert {"lane", "preset", "start", "end"} <= set(_named(operations, "booking-list").names)
    for who, audience in REST_AUDIENCES.items():
        for operation in operations:
            if operation.call.audience in audience:
                _try_fields(watch, site, who, operation, each)
            else:
                _send(watch, site, who, operation, hostile.told(operation.body))
    assert not watch.wrong, "\n".join(watch.wrong)


def _named(operations: list[Operation], name: str) -> Operation:
    return next(one for one in operations if (one.call.name, one.call.method) == (name, "post"))


def _try_fields(watch: Watch, site: Site, who: str, operation: Operation, each: int) -> None:
    short = [text for text in hostile.TEXTS if len(text) < LONGEST_QUERY]
    seed = (who, operation.path, operation.call.method)
    for name in operation.query:
        for text in some(short, each, *seed, name):
            _send(watch, site, who, operation, "{}", "?" + encoded([(name, text)]))
    for name in operation.names:
        for value in some(hostile.VALUES, each, *seed, name):
            _send(watch, site, who, operation, hostile.told(operation.body | {name: value}))


def _send(
    watch: Watch, site: Site, who: str, operation: Operation, body: str, query: str = ""
) -> None:
    method = operation.call.method.upper()
    watch.send(site.clients[who], method, operation.path + query, body, JSON)


@each_few
def test_no_body_or_address_of_rest_breaks_anything(site: Site, each: int) -> None:
    watch = Watch()
    for who, audience in REST_AUDIENCES.items():
        for call in (call for call in audiences.calls() if call.audience in audience):
            path, method = audiences.address(site, call.name), call.method.upper()
            for kind, body in some(hostile.BODIES, each, who, *call):
                watch.send(site.clients[who], method, path, body, kind)
            for path in some(_odd_addresses(call.name), each, who, *call):
                watch.send(site.clients[who], method, path, "{}", JSON)
    assert not watch.wrong, "\n".join(watch.wrong)
