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
    """The view's `read_scope` for safe methods and `write_scope` for the rest; `is_for_members`
    where the scope admin is of use to members as well.

    A token of scope admin may do all that its owner may; whether the owner is an administrator is
    for the services to check.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Whether this caller may use this view at all."""
        if not (request.user and request.user.is_authenticated):
            return False
        if not isinstance(request.auth, ApiToken):
            return True
        is_read = request.method in permissions.SAFE_METHODS
        needed = getattr(view, "read_scope" if is_read else "write_scope", Scope.ADMIN)
        self.message = _refused(needed, request, view)
        return needed in request.auth.scopes or Scope.ADMIN in request.auth.scopes


def _refused(needed: str, request: Request, view: "APIView") -> str:
    """What to do about it. No scope makes an administrator of who is none."""
    is_for_all = needed != Scope.ADMIN or getattr(view, "is_for_members", False)
    if is_for_all or request.user.is_staff:
        return _("This token lacks the scope %(scope)s: make one that has it.") % {"scope": needed}
    return NOT_ADMINISTRATOR.words


def may_use_lane(request: Request, lane_pk: int) -> bool:
    """Whether the caller's token, if there is one, is meant for this lane."""
    if not isinstance(request.auth, ApiToken):
        return True
    lanes = {lane.pk for lane in request.auth.lanes.all()}
    return not lanes or lane_pk in lanes
