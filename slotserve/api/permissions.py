"""What a token may do. A session may do what its person may."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from rest_framework import permissions
from rest_framework.request import Request

from gateway.models import ApiToken, Scope
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from wire.words import said

if TYPE_CHECKING:  # rest_framework.views reads this class while it is imported
    from rest_framework.views import APIView


OTHER_LANE = Refusal("not_yours", said("This token is not meant for that lane: use one that is."))


class HasScope(permissions.BasePermission):
    """The view's `read_scope` for safe methods and `write_scope` for the rest, which are admin
    where it names none.

    What needs the scope admin is for administrators alone, by session and token alike, unless the
    view says `is_for_members`. A token of that scope may do all that its owner may.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Whether this caller may use this view at all."""
        if not (request.user and request.user.is_authenticated):
            return False
        is_read = request.method in permissions.SAFE_METHODS
        needed = getattr(view, "read_scope" if is_read else "write_scope", Scope.ADMIN)
        is_for_all = needed != Scope.ADMIN or getattr(view, "is_for_members", False)
        if not (is_for_all or request.user.is_staff):
            self.message, self.code = NOT_ADMINISTRATOR.words, NOT_ADMINISTRATOR.code
            return False
        if not isinstance(request.auth, ApiToken):
            return True
        words = _("This token lacks the scope %(scope)s: make one that has it.")
        self.message = words % {"scope": needed}
        return needed in request.auth.scopes or Scope.ADMIN in request.auth.scopes


def may_use_lane(request: Request, lane_pk: int) -> bool:
    """Whether the caller's token, if there is one, is meant for this lane."""
    if not isinstance(request.auth, ApiToken):
        return True
    lanes = {lane.pk for lane in request.auth.lanes.all()}
    return not lanes or lane_pk in lanes
