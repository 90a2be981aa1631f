"""Hosts as pages, REST and commands show them. Reads only."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch, QuerySet
from django.utils.translation import gettext as _

from lanes.host_health import Trouble
from lanes.host_watch import hosts_with_facts, troubles_of
from lanes.joining import is_joining
from lanes.models import Gpu, Host, HostReport, JoinToken, TokenState


@dataclass(frozen=True, slots=True)
class HostOverview:
    """One host with what is known of it and what is wrong."""

    host: Host
    report: HostReport | None
    troubles: list[Trouble]

    @property
    def state(self) -> str:
        """unreachable, trouble, or well; unknown when it has not been asked yet."""
        if self.host.unreachable_since is not None:
            return "unreachable"
        if self.host.seen_at is None:
            return "unknown"
        return "trouble" if self.troubles else "well"

    @property
    def unheard(self) -> str:
        """What to do about one that has not been heard of yet; empty of others."""
        if self.state != "unknown":
            return ""
        return _("Its worker has not looked yet: start it there, or join the machine anew.")

    @property
    def seen_at(self) -> datetime | None:
        """Its last look."""
        return self.host.seen_at

    @property
    def lane_slugs(self) -> list[str]:
        """Its lanes."""
        return [lane.slug for lane in self.host.lanes.all()]

    @property
    def free_share(self) -> int | None:
        """Percent of the disk that is free."""
        if self.report is None or not self.report.disk_total_bytes:
            return None
        return round(100 * self.report.disk_free_bytes / self.report.disk_total_bytes)


def overview(host: Host) -> HostOverview:
    """A row of `hosts_for_people`."""
    return HostOverview(host, getattr(host, "report", None), troubles_of(host))


def hosts_for_people() -> QuerySet[Host]:
    """All hosts in the order of their names; four queries, with their lanes and cards."""
    cards = Prefetch("gpus", Gpu.objects.select_related("state").order_by("state__number", "uuid"))
    found = hosts_with_facts().select_related("gpu_driver")
    return found.prefetch_related("lanes", cards, "gpus__lanes").order_by("name", "pk")


@dataclass(frozen=True, slots=True)
class JoinTokenView:
    """A join token, without its text.

    `state`: waiting, joining (used, and the host's worker has not looked since), used, revoked or
    expired.
    """

    token: JoinToken
    state: str
    is_revocable: bool


def join_tokens(now: datetime, hosts: Iterable[Host] | None = None) -> list[JoinTokenView]:
    """All of the last month, the newest first; a query, and one more without `hosts`."""
    known = {host.key: host for host in (Host.objects.all() if hosts is None else hosts)}
    tokens = JoinToken.objects.select_related("made_by").order_by("-made_at", "-pk")
    return [_token_view(token, known.get(token.key), now) for token in tokens]


def _token_view(token: JoinToken, host: Host | None, now: datetime) -> JoinTokenView:
    state: str = token.state(now)
    if is_joining(token, host, now):
        state = "joining"
    return JoinTokenView(token, state, is_revocable=state in (TokenState.WAITING, "joining"))
