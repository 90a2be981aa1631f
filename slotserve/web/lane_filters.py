"""Which lanes the overview shows, and in which order. Pure but for the words of its choices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from slotserve.overview import LaneOverview

SHOWN = {"": _("All"), "free": _("Free now"), "mine": _("Mine")}
LONGEST = 100  # characters of a search


@dataclass(frozen=True, slots=True)
class Wish:
    """What a reader is after."""

    words: str = ""
    show: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Wish":
        """As an address has it; what it does not know is as if it were not said."""
        show = query.get("show", "")
        return cls(query.get("q", "").strip()[:LONGEST], show if show in SHOWN else "")

    @property
    def query(self) -> str:
        """For an address; empty for none."""
        said = {name: value for name, value in (("q", self.words), ("show", self.show)) if value}
        return urlencode(said)

    @property
    def choices(self) -> list[tuple[str, object]]:
        """What can be shown, by value and words."""
        return list(SHOWN.items())

    def of_all(self, views: Iterable[LaneOverview], reader: User) -> list[LaneOverview]:
        """Those that are wished for; the reader's own come first, and keep their order."""
        found = [view for view in views if self._is_meant(view, reader)]
        return sorted(found, key=lambda view: not view.is_mine(reader))

    def _is_meant(self, view: LaneOverview, reader: User) -> bool:
        if self.show == "free" and not view.is_free:
            return False
        if self.show == "mine" and not view.is_mine(reader):
            return False
        text = _text(view)
        return all(word in text for word in self.words.casefold().split())


def _text(view: LaneOverview) -> str:
    """What a search looks into: the lane, its host, its cards, what runs and what is ordered."""
    cards = " ".join(gpu.name for gpu in view.lane.gpus.all())
    models = [view.model, view.runtime.revision.preset.name if view.runtime else ""]
    return " ".join(
        [view.lane.slug, view.lane.name, view.lane.host.name, cards, *models]
    ).casefold()
