"""The cards of a host as rows, brought up to what its driver shows."""

from lanes.gpus.readings import Card, Inventory
from lanes.models import Gpu, Host


def enrol(host: Host, inventory: Inventory) -> list[Gpu]:
    """The host's cards, new ones added, by index and then by UUID; writes only what has changed.

    A card that is no longer seen stays, since lanes may name it. A card that another host names
    already (it was moved, or two workers share a machine) goes over when it is registered anew.
    """
    known = {gpu.uuid: gpu for gpu in host.gpus.select_related("state").prefetch_related("lanes")}
    unknown = [card for card in inventory.cards if card.uuid not in known]
    if unknown:
        new = [Gpu(host=host, uuid=card.uuid, **_facts(card)) for card in unknown]
        Gpu.objects.bulk_create(new, ignore_conflicts=True)
        return _cards(host)
    for card in inventory.cards:
        _correct(known[card.uuid], card)
    return list(known.values())


def _cards(host: Host) -> list[Gpu]:
    """The host's cards as they are in the database."""
    return list(host.gpus.select_related("state").prefetch_related("lanes"))


def register(host: Host, inventory: Inventory) -> None:
    """As `enrol`, and cards that another host named go over to this one."""
    for card in inventory.cards:
        Gpu.objects.update_or_create(uuid=card.uuid, defaults={"host": host, **_facts(card)})


def _correct(gpu: Gpu, card: Card) -> None:
    facts = _facts(card)
    if any(getattr(gpu, name) != value for name, value in facts.items()):
        Gpu.objects.filter(pk=gpu.pk).update(**facts)


def _facts(card: Card) -> dict[str, object]:
    """What lasts; a size that could not be read leaves the known one."""
    size = {} if card.total_bytes is None else {"memory_bytes": card.total_bytes}
    return {"name": card.name[:100], **size}
