"""What a new installation is given, and that a second start gives nothing again."""

import json
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.contrib.staticfiles import finders
from django.core.management import CommandError, call_command
from django.db import DatabaseError
from pytest_django import Settings

from gateway import tokens
from gateway.models import ApiToken
from lanes import clock
from lanes.demo_model import DemoModelError
from lanes.models import Host, Lane
from lanes.refusals import Refusal
from slotserve import first_start, static_files
from slotserve.first_start import Report, make_administrator, prepare
from tests.builders import person
from tests.nvml.driver import FakeDriver

pytest_plugins = ["tests.nvml.fixtures"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A demo model that needs no network, on a machine without GPUs."""
    file = tmp_path / "models" / "demo.gguf"
    file.parent.mkdir()
    file.write_bytes(b"GGUF" + b"\0" * 100)
    monkeypatch.setattr(first_start, "fetch_demo_model", lambda folder: file)
    return file


def prepared(*, with_demo: bool = True) -> Report:
    """The report of one start."""
    report = prepare(with_demo=with_demo)
    assert isinstance(report, Report)
    return report


def test_the_first_start_makes_administrator_host_demo_and_token() -> None:
    report = prepared()
    admin = get_user_model().objects.get(username="admin")
    assert admin.is_superuser
    assert admin.check_password(report.password)
    token = tokens.find(report.token, clock.database_now())
    assert token is not None
    assert (token.owner, token.scopes) == (admin, ["inference"])
    assert Lane.objects.get().default_preset.slug == report.model  # type: ignore[union-attr]
    assert report.notes == ("No GPU was found: models run on the CPU.",)


def test_the_second_start_keeps_everything_and_tells_no_secret() -> None:
    prepared()
    before = [model.objects.count() for model in (get_user_model(), Host, Lane, ApiToken)]
    again = prepared()
    assert (again.administrator, again.password, again.token) == ("admin", "", "")
    assert [m.objects.count() for m in (get_user_model(), Host, Lane, ApiToken)] == before


def test_without_the_demo_there_is_no_lane_and_no_token() -> None:
    report = prepared(with_demo=False)
    assert (report.token, report.model) == ("", "")
    assert Host.objects.count() == 1
    assert not Lane.objects.exists()


def test_without_its_model_the_product_starts_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreachable(folder: Path) -> Path:
        raise DemoModelError("There is no network.")

    monkeypatch.setattr(first_start, "fetch_demo_model", unreachable)
    report = prepared()
    assert "No demo lane: There is no network." in report.notes
    assert (report.token, report.model) == ("", "")


def test_gpus_are_named(driver: FakeDriver) -> None:
    driver.change(name="NVIDIA H100")
    assert "GPUs of this host: NVIDIA H100." in prepared().notes


def test_the_password_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTSERVE_ADMIN_PASSWORD", "correct horse battery")
    report = prepared()
    assert get_user_model().objects.get().check_password("correct horse battery")
    assert report.password == ""
    assert first_start.WEAK not in report.notes


def test_a_weak_given_password_is_taken_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTSERVE_ADMIN_PASSWORD", "1234")
    assert first_start.WEAK in prepared().notes
    assert get_user_model().objects.get().check_password("1234")


def test_an_administrator_who_is_there_is_kept() -> None:
    person("chief", is_superuser=True)
    assert make_administrator() == Report("chief")
    assert get_user_model().objects.count() == 1


def test_a_member_named_admin_is_not_made_one() -> None:
    person("admin")
    refusal = make_administrator()
    assert isinstance(refusal, Refusal)
    assert "createsuperuser" in refusal.words


def test_the_command_writes_its_report_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotserve.management.commands.first_start.collect_if_changed", bool)
    file = tmp_path / "report.json"
    call_command("first_start", report=file)
    assert json.loads(file.read_text())["administrator"] == "admin"
    assert file.stat().st_mode & 0o777 == 0o600


def test_secrets_that_an_interrupted_start_has_not_shown_are_told_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotserve.management.commands.first_start.collect_if_changed", bool)
    file = tmp_path / "report.json"
    call_command("first_start", report=file)
    first = json.loads(file.read_text())
    call_command("first_start", report=file)
    assert json.loads(file.read_text()) == first


def test_a_database_that_cannot_be_used_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> bool:
        raise DatabaseError("file is not a database")

    monkeypatch.setattr("slotserve.management.commands.first_start.collect_if_changed", broken)
    with pytest.raises(CommandError, match=r"cannot be used: file is not a database"):
        call_command("first_start")


def test_static_files_are_collected_only_when_one_has_changed(
    tmp_path: Path, settings: Settings
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.css").write_text("a {}")
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STATIC_ROOT = tmp_path / "collected"
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]
    assert static_files.collect_if_changed()
    assert not static_files.collect_if_changed()
    (source / "a.css").write_text("a { color: red }")
    assert static_files.collect_if_changed()
    assert "red" in (tmp_path / "collected" / "a.css").read_text()
