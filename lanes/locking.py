"""One administrator's edit at a time."""

from lanes.models import Host


def one_edit_at_a_time() -> None:
    """Until the transaction ends, no other edit of hosts' files, presets or lanes goes on.

    Names and aliases, and cards of lanes, are rules over several rows that no constraint can
    hold. Take it before any other lock. Rows that only refer to a host are not held up.
    """
    list(Host.objects.order_by("pk").select_for_update(no_key=True).values_list("pk"))
