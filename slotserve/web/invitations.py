"""Invitations: for administrators to make, and for whoever was invited to accept."""

from django.contrib import messages
from django.contrib.auth import login
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from lanes import clock
from lanes.refusals import Refusal
from slotserve import account_mail, invitations
from slotserve.accounts import SESSION_KEY
from slotserve.models import Invitation
from slotserve.web.access import staff_required
from slotserve.web.answers import member, say
from slotserve.web.invitation_forms import AcceptForm, InviteForm

BACKEND = "django.contrib.auth.backends.ModelBackend"
ON_A_PAGE = 50


@staff_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Invitations, the newest first; a new one's link is in the answer to its making alone."""
    form = InviteForm(request.POST or None)
    link = _invited(request, form) if form.is_valid() else None
    now = clock.database_now()
    found = Invitation.objects.select_related("created_by", "used_by").prefetch_related("groups")
    part = Paginator(found, ON_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "form": InviteForm() if link else form,
        "link": link,
        "page": part,
        "invitations": [(each, each.state(now)) for each in part],
    }
    return render(request, "invitations.html", context, status=400 if form.errors else 200)


@staff_required
@require_POST
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """It opens nothing any more."""
    refusal = invitations.revoke(get_object_or_404(Invitation, pk=pk), actor=member(request))
    say(request, refusal, _("The invitation is withdrawn."))
    return redirect("invitations")


@never_cache
@require_safe
def follow(request: HttpRequest, text: str) -> HttpResponse:
    """The link itself: its secret moves from the address into the session; nothing is used up."""
    found = invitations.find(text, clock.database_now())
    if isinstance(found, Refusal):
        return _refused(request, found)
    request.session[SESSION_KEY] = text
    return redirect("accept-invitation")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def accept(request: HttpRequest) -> HttpResponse:
    """Name and password, or single sign-on, make the account."""
    found = invitations.find(request.session.get(SESSION_KEY, ""), clock.database_now())
    if isinstance(found, Refusal):
        return _refused(request, found)
    form = AcceptForm(request.POST or None)
    if form.is_valid():
        made = invitations.accept(found, **form.cleaned_data)
        if not isinstance(made, Refusal):
            request.session.pop(SESSION_KEY, None)
            login(request, made, backend=BACKEND)
            messages.success(request, _("Welcome. Your account is made."))
            return redirect("overview")
        form.add_error(None, made.words)
    context = {"form": form, "invitation": found}
    return render(request, "invitation.html", context, status=400 if form.errors else 200)


def _refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    return render(request, "invitation_refused.html", {"words": refusal.words}, status=404)


def _invited(request: HttpRequest, form: InviteForm) -> str | None:
    wish = form.cleaned_data
    made = invitations.invite(
        actor=member(request),
        email=wish["email"],
        groups=list(wish["groups"]),
        is_administrator=wish["is_administrator"],
        lifetime=form.lifetime(),
    )
    if isinstance(made, Refusal):
        form.add_error(None, made.words)
        return None
    link = invitations.link_of(made[1], request.build_absolute_uri("/"))
    if wish["email"]:
        _send(request, made[0], link)
    return link


def _send(request: HttpRequest, invitation: Invitation, link: str) -> None:
    """Have the mail sent; when nobody sends it, the page says so."""
    if not account_mail.is_sent():
        words = _("This installation sends no e-mails: pass the link on yourself.")
        messages.warning(request, words)
    elif invitations.send(invitation, link):
        words = _("The link is sent to %(email)s.") % {"email": invitation.email}
        messages.success(request, words)
    else:
        messages.warning(request, _("The mail could not be sent now: pass the link on yourself."))
