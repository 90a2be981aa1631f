"""changepassword: it asks, and writes the password alone."""

import getpass
from collections.abc import Callable
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError

from tests import builders

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
GOOD = "quite a secret"


def change(monkeypatch: pytest.MonkeyPatch, typed: Callable[[], str], name: str = "owner") -> str:
    """What it says beside its answer, `typed` being asked at each prompt."""
    said = StringIO()
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: typed())
    call_command("changepassword", name, stdout=said, stderr=said)
    return said.getvalue()


def test_it_changes_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    person = builders.person()
    assert "It is changed." in change(monkeypatch, lambda: GOOD)
    person.refresh_from_db()
    assert person.check_password(GOOD)


def test_what_changes_while_it_asks_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    person = builders.administrator()

    def typed() -> str:
        User.objects.filter(pk=person.pk).update(is_active=False, is_staff=False, email="x@y.org")
        return GOOD

    change(monkeypatch, typed, person.username)
    person.refresh_from_db()
    assert (person.is_active, person.is_staff, person.email) == (False, False, "x@y.org")
    assert person.check_password(GOOD)


@pytest.mark.parametrize("answers", [["1", "2"] * 3, ["12345678"] * 6])
def test_two_that_differ_or_are_weak_change_nothing(
    monkeypatch: pytest.MonkeyPatch, answers: list[str]
) -> None:
    person = builders.person()
    left = iter(answers)
    with pytest.raises(CommandError, match="Nothing was changed after 3 attempts"):
        change(monkeypatch, lambda: next(left))
    before = person.password
    person.refresh_from_db()
    assert (person.password, list(left)) == (before, [])


def test_a_name_that_nobody_has_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="There is no member nobody"):
        change(monkeypatch, lambda: GOOD, "nobody")
