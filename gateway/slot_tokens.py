"""Tokens for one booking: they open its lane from its start to its end, and nothing else.

They hang on the booking's row: a slot that is moved, extended or released takes its tokens along.
"""

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from bookings.models import Booking
from bookings.states import Kind, State
from gateway.models import ApiToken, Scope
from gateway.tokens import create_token
from lanes import clock
from lanes.refusals import Refusal


def make_slot_token(
    booking: Booking, *, actor: User, name: str = ""
) -> tuple[ApiToken, str] | Refusal:
    """A token that calls models on the booking's lane during the booking: row and text.

    Its text is in this answer and never again. Refusals: not_yours (administrators neither: it
    would act as its owner), wrong_state (not confirmed), wrong_kind (whole GPU), too_late, and
    those of `create_token`.
    """
    refusal = _objection(booking, actor)
    if refusal:
        return refusal
    fallback = _("Slot on %(lane)s") % {"lane": booking.lane.name}
    return create_token(
        owner=actor,
        name=name or fallback[:100],
        scopes=[Scope.INFERENCE],
        lanes=[],
        expires_at=None,
        booking=booking,
    )


def _objection(booking: Booking, actor: User) -> Refusal | None:
    if booking.owner_id != actor.pk:
        words = _("This booking is somebody else's: its owner makes tokens for it.")
        return Refusal("not_yours", words)
    if booking.state != State.CONFIRMED:
        words = _("This booking is not confirmed: make the token when it is.")
        return Refusal("wrong_state", words)
    if booking.kind == Kind.GPU:
        words = _("No model server runs while you have the whole GPU, so no token can call one.")
        return Refusal("wrong_kind", words)
    if booking.end <= clock.database_now():
        return Refusal("too_late", _("This booking is over."))
    return None
