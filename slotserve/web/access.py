"""Who may see a page."""

from collections.abc import Callable
from functools import wraps
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

View = Callable[..., HttpResponse]


def members_only(view: View) -> View:
    """For whoever is logged in; strangers, and pages whose session has ended, are led to log in."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        answer = redirect_to_login(page_of(request))
        # Into a fragment's place a plain redirect would put the whole login page.
        return HttpResponseClientRedirect(answer.url) if _is_fragment(request) else answer

    return guarded


def staff_required(view: View) -> View:
    """For administrators: strangers are asked to log in, members get a 403 page."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not request.user.is_staff:
            raise PermissionDenied("This page is for administrators.")
        return view(request, *args, **kwargs)

    return members_only(guarded)


def came_from(request: HttpRequest, otherwise: str) -> str:
    """The page of ours that a form or link names as the one to go back to, else another."""
    page = request.POST.get("next") or request.GET.get("next", "")
    is_ours = page.startswith("/") and url_has_allowed_host_and_scheme(page, allowed_hosts=None)
    return page if is_ours else otherwise


def _is_fragment(request: HttpRequest) -> bool:
    return bool(request.htmx)  # type: ignore[attr-defined]


def page_of(request: HttpRequest) -> str:
    """The page to go back to: the one a fragment or a form is on, or what was asked."""
    if request.method in {"GET", "HEAD"} and not _is_fragment(request):
        return request.get_full_path()
    try:
        if _is_fragment(request):
            return request.htmx.current_url_abs_path or "/"  # type: ignore[attr-defined]
        page = urlsplit(request.headers.get("Referer", ""))
    except ValueError:  # what the browser names is no address
        return "/"
    return page.path or "/" if page.netloc == request.get_host() else "/"
