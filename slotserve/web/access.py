"""Who may see a page."""

from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

View = Callable[..., HttpResponse]


def staff_required(view: View) -> View:
    """For administrators: strangers are asked to log in, members get a 403 page."""

    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not request.user.is_staff:
            raise PermissionDenied("This page is for administrators.")
        return view(request, *args, **kwargs)

    return login_required(guarded)
