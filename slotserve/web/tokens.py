"""The pages of API tokens: one's own, for administrators everybody's, and those of a booking."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from bookings.models import Booking
from gateway import tokens
from gateway.limits import limits_of
from gateway.models import ApiToken
from gateway.slot_tokens import make_slot_token
from lanes import clock
from lanes.refusals import Refusal
from slotserve.web.access import came_from, members_only
from slotserve.web.answers import kept_query, member, say
from slotserve.web.token_forms import OwnerForm, TokenForm

ON_A_PAGE = 50


@members_only
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Tokens; a new one is shown in the answer to its making and never again."""
    form = TokenForm(request.POST or None)
    text = None
    if request.method == "POST" and form.is_valid():
        text = _make(request, form)
        form = TokenForm() if text else form
    return _page(request, form, text)


@members_only
@never_cache
@require_POST
def for_slot(request: HttpRequest, pk: int) -> HttpResponse:
    """A token for one booking of the caller's, shown this once."""
    booking = get_object_or_404(Booking.objects.visible_to(request.user), pk=pk)
    made = make_slot_token(booking, actor=member(request))
    if isinstance(made, Refusal):
        messages.error(request, made.words)
        return redirect(came_from(request, "bookings"))
    return _page(request, TokenForm(), made[1], slot=booking)


@members_only
@require_POST
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """End a token."""
    token = get_object_or_404(ApiToken.objects.visible_to(request.user), pk=pk)
    words = _("%(name)s is revoked: the gateway refuses it from now on.") % {"name": token.name}
    say(request, tokens.revoke(token, actor=member(request)), words)
    return redirect(came_from(request, "tokens"))


def _make(request: HttpRequest, form: TokenForm) -> str | None:
    made = tokens.create_token(owner=member(request), **form.wish(clock.database_now()))
    if isinstance(made, Refusal):
        form.add_error(None, made.words)
        return None
    return made[1]


def _page(request: HttpRequest, form: TokenForm, text: str | None, **more: Any) -> HttpResponse:
    shown, of = _shown(request)
    part = Paginator(shown, ON_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "form": form,
        "owners": of,
        "page": part,
        "query": kept_query(request),
        "text": text,
        "limits": limits_of(member(request)),
        "now": clock.database_now(),
        "gateway": settings.SLOTSERVE_GATEWAY_URL,
        **more,
    }
    return render(request, "tokens.html", context, status=400 if form.errors else 200)


def _shown(request: HttpRequest) -> tuple[QuerySet[ApiToken], OwnerForm | None]:
    """The caller's tokens; an administrator who asks (`?of=`) sees another's or all."""
    found = ApiToken.objects.visible_to(request.user)
    found = found.select_related("owner", "booking__lane").prefetch_related("lanes")
    if not request.user.is_staff:
        return found, None
    asked = "of" in request.GET
    form = OwnerForm(request.GET if asked else {"of": member(request).username})
    owner = form.cleaned_data["of"] if form.is_valid() else member(request)
    return found.filter(owner=owner) if owner else found, form
