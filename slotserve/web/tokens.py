"""The page of API tokens."""

from datetime import timedelta

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from gateway import tokens
from gateway.limits import RateLimits, limits_of
from gateway.models import ApiToken
from lanes import clock
from lanes.refusals import Refusal
from slotserve.web.access import members_only
from slotserve.web.answers import member, say
from slotserve.web.forms import TokenForm


@members_only
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """The caller's tokens; a new one is shown in the answer to its making and never again."""
    form = TokenForm(request.POST or None)
    text = None
    if request.method == "POST" and form.is_valid():
        text = _make(request, form)
        form = TokenForm() if text else form
    own = ApiToken.objects.filter(owner=member(request), session="").prefetch_related("lanes")
    context = {
        "form": form,
        "tokens": own,
        "text": text,
        "limits": limits_of(member(request)),
        "now": clock.database_now(),
        "gateway": settings.SLOTSERVE_GATEWAY_URL,
    }
    return render(request, "tokens.html", context, status=400 if form.errors else 200)


@members_only
@require_POST
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """End a token."""
    token = get_object_or_404(ApiToken.objects.visible_to(request.user), pk=pk)
    words = _("%(token)s is revoked: the gateway refuses it from now on.") % {"token": token.name}
    say(request, tokens.revoke(token, actor=member(request)), words)
    return redirect("tokens")


def _make(request: HttpRequest, form: TokenForm) -> str | None:
    wish, days = form.cleaned_data, form.cleaned_data["days"]
    made = tokens.create_token(
        owner=member(request),
        name=wish["name"],
        scopes=wish["scopes"],
        lanes=[],
        expires_at=clock.database_now() + timedelta(days=days) if days else None,
        rate_limits=RateLimits(wish["requests_per_minute"], wish["tokens_per_minute"]),
    )
    if isinstance(made, Refusal):
        form.add_error(None, made.words)
        return None
    return made[1]
