"""What a new installation is given: an administrator, this host, a demo. Safe to repeat."""

import secrets
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from gateway.models import ApiToken, Scope
from gateway.tokens import create_token
from lanes.demo import PRESET, ensure_demo
from lanes.demo_model import DemoModelError, fetch_demo_model
from lanes.models import Host
from lanes.refusals import Refusal
from lanes.services import register_host
from wire.env import read_secret
from wire.words import said

ADMINISTRATOR = "admin"
TOKEN = "demo"  # noqa: S105 - its name
WEAK = "SLOTSERVE_ADMIN_PASSWORD is a weak password: change it on the account page."


@dataclass(frozen=True, slots=True)
class Report:
    """What there is now. Password and token: only what was made just now, never told again."""

    administrator: str
    password: str = ""
    token: str = ""
    model: str = ""
    notes: tuple[str, ...] = ()

    def noting(self, *notes: str) -> "Report":
        """The same with more sentences."""
        return replace(self, notes=(*self.notes, *notes))


def prepare(*, with_demo: bool) -> Report | Refusal:
    """Make what is missing of host, administrator, demo and demo token.

    What takes long comes first, so that an interruption leaves no password that nobody was told.
    """
    host = register_host(settings.SLOTSERVE_HOST_KEY, socket.gethostname())
    if isinstance(host, Refusal):
        return host
    model = fetched_model() if with_demo else None
    with transaction.atomic():
        report = make_administrator()
        if isinstance(report, Refusal):
            return report
        report = report.noting(gpu_sentence(host))
        if model is not None:
            report = add_demo(report, host, model)
    return report


def fetched_model() -> Path | Refusal:
    """The demo model's file in the data folder."""
    try:
        return fetch_demo_model(Path(settings.SLOTSERVE_DATA) / "models")
    except DemoModelError as error:
        return Refusal("no_model", str(error))


def make_administrator() -> Report | Refusal:
    """The first administrator, with the password of SLOTSERVE_ADMIN_PASSWORD or a new one."""
    people = get_user_model().objects
    present = people.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if present:
        return Report(present.username)
    if people.filter(username=ADMINISTRATOR).exists():
        words = said(
            "A member is named {administrator}: run `manage.py createsuperuser` instead.",
            administrator=ADMINISTRATOR,
        )
        return Refusal("name_taken", words)
    given = read_secret("SLOTSERVE_ADMIN_PASSWORD")
    password = given or secrets.token_urlsafe(12)
    people.create_superuser(ADMINISTRATOR, password=password)
    if not given:
        return Report(ADMINISTRATOR, password=password)
    return Report(ADMINISTRATOR, notes=(WEAK,) if is_weak(given) else ())


def add_demo(report: Report, host: Host, model: Path | Refusal) -> Report:
    """The demo lane and a token for it. Without its model the product starts all the same."""
    lane = model if isinstance(model, Refusal) else ensure_demo(host, model)
    if isinstance(lane, Refusal):
        return report.noting(f"No demo lane: {lane.words}")
    owner = User.objects.get(username=report.administrator)
    return replace(with_token(report, owner), model=PRESET)


def with_token(report: Report, owner: User) -> Report:
    """The report with a token for the demo, unless one was made before."""
    if ApiToken.objects.filter(owner=owner, name=TOKEN).exists():
        return report
    made = create_token(
        owner=owner, name=TOKEN, scopes=[Scope.INFERENCE], lanes=[], expires_at=None
    )
    return report if isinstance(made, Refusal) else replace(report, token=made[1])


def gpu_sentence(host: Host) -> str:
    """Which cards the host has; that models run on the CPU when it has none."""
    names = ", ".join(gpu.name for gpu in host.gpus.all())
    return f"GPUs of this host: {names}." if names else "No GPU was found: models run on the CPU."


def is_weak(password: str) -> bool:
    """Whether the rules for members' passwords would refuse it."""
    try:
        validate_password(password)
    except ValidationError:
        return True
    return False
