"""A day of each lane's cards, a row a minute, in a ring that never grows beyond a day."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import QuerySet

from lanes.gpus import weeks
from lanes.gpus.polled import PolledLane
from lanes.models import Lane, LaneMinute
from lanes.models.gpus import MINUTES_KEPT

DAY = timedelta(minutes=MINUTES_KEPT)


def of_lane(lane: Lane, now: datetime) -> QuerySet[LaneMinute]:
    """The minutes of the last day, oldest first; those in which nobody polled are missing."""
    return lane.minutes.filter(minute__gt=now - DAY, minute__lte=now).order_by("minute")


def add(polled: Iterable[PolledLane], now: datetime) -> None:
    """One more sample of this minute for each lane; two queries, and two more when it begins."""
    minute = now.replace(second=0, microsecond=0)
    samples = [found for lane in polled if (found := _sample(lane, minute)) is not None]
    begun = {
        row.lane_id: row
        for row in LaneMinute.objects.filter(
            lane__in=[sample.lane_id for sample in samples], slot=_slot(minute), minute=minute
        )
    }
    LaneMinute.objects.bulk_create(
        [_merged(begun.get(sample.lane_id), sample) for sample in samples],
        update_conflicts=True,
        unique_fields=["lane", "slot"],
        update_fields=[
            "minute",
            "samples",
            "used_bytes",
            "outside_bytes",
            "utilisation",
            "power_watts",
        ],
    )
    new = [sample.lane_id for sample in samples if sample.lane_id not in begun]
    if new:
        weeks.fold(new, minute)


def _sample(polled: PolledLane, minute: datetime) -> LaneMinute | None:
    if polled.lane is None or not polled.spaces:
        return None
    use = [c.card.utilisation for c in polled.cards if c.card.utilisation is not None]
    power = [c.card.power_watts for c in polled.cards if c.card.power_watts is not None]
    return LaneMinute(
        lane=polled.lane,
        slot=_slot(minute),
        minute=minute,
        used_bytes=sum(space.used_bytes for space in polled.spaces),
        outside_bytes=sum(space.verdict.outside_bytes for space in polled.spaces),
        utilisation=sum(use) / len(use) if use else None,
        power_watts=sum(power) if power else None,
    )


def _merged(begun: LaneMinute | None, sample: LaneMinute) -> LaneMinute:
    """The minute with one more sample: the most memory, the mean of the rest."""
    if begun is None:
        return sample
    sample.samples = begun.samples + 1
    sample.used_bytes = max(begun.used_bytes, sample.used_bytes)
    sample.outside_bytes = max(begun.outside_bytes, sample.outside_bytes)
    sample.utilisation = _mean(begun.utilisation, sample.utilisation, begun.samples)
    sample.power_watts = _mean(begun.power_watts, sample.power_watts, begun.samples)
    return sample


def _mean(before: float | None, latest: float | None, count: int) -> float | None:
    if before is None or latest is None:
        return latest if before is None else before
    return (before * count + latest) / (count + 1)


def _slot(minute: datetime) -> int:
    return minute.hour * 60 + minute.minute
