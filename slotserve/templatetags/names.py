"""People and what they did, as far as the reader may know who it was."""

from django import template
from django.contrib.auth.models import User
from django.template import Context

from lanes.models import LaneEvent
from slotserve.names import names_of

register = template.Library()


@register.simple_tag(takes_context=True)
def name_of(context: Context, person: User) -> str:
    """Their name, or "a member"."""
    return names_of(context["request"]).of(person.get_username())


@register.simple_tag(takes_context=True)
def told_of(context: Context, event: LaneEvent) -> str:
    """A sentence of a lane's history."""
    return names_of(context["request"]).told(event)
