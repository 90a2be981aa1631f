"""Notices in the reader's browsers."""

from django.contrib.staticfiles import finders
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from lanes.refusals import Refusal
from notices import push
from slotserve.web.access import members_only
from slotserve.web.answers import member, say


@require_safe
def worker(request: HttpRequest) -> HttpResponse:
    """What browsers run when something is pushed. From here, because it rules what is below it."""
    path = finders.find("slotserve/push-worker.js")
    if not isinstance(path, str):
        raise Http404
    with open(path, "rb") as file:
        return HttpResponse(file.read(), content_type="text/javascript; charset=utf-8")


@members_only
@require_POST
def subscribe(request: HttpRequest) -> HttpResponse:
    """Take a browser's subscription; asked by the page's script."""
    names = ("endpoint", "p256dh", "auth", "browser")
    made = push.subscribe(member(request), **{name: request.POST.get(name, "") for name in names})
    if isinstance(made, Refusal):
        return JsonResponse({"code": made.code, "detail": made.words}, status=400)
    return JsonResponse({"id": made.pk}, status=201)


@members_only
@require_POST
def unsubscribe(request: HttpRequest, pk: int) -> HttpResponse:
    """Tell a browser nothing more."""
    if not push.unsubscribe(member(request), pk):
        raise Http404
    say(request, None, _("This browser is told nothing more."))
    return redirect("preferences")
