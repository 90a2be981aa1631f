"""Pages for administrators: the rules of booking."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bookings.models import Policy
from bookings.policy_service import delete_policy, save_policy
from lanes.refusals import Refusal
from slotserve.web.access import staff_required
from slotserve.web.answers import member, say
from slotserve.web.policy_forms import PolicyForm
from slotserve.web.policy_summary import summary


@staff_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """All rows, the most general first."""
    found = Policy.objects.select_related("lane", "group").prefetch_related("presets")
    rows = sorted(found, key=lambda row: 2 * bool(row.lane) + bool(row.group))
    context = {
        "rows": [(row, summary(row)) for row in rows],
        "zone": timezone.get_default_timezone_name(),
    }
    return render(request, "policies.html", context)


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int | None = None) -> HttpResponse:
    """Make a row or change one."""
    policy = get_object_or_404(Policy, pk=pk) if pk else None
    form = PolicyForm(request.POST or None, policy=policy)
    if form.is_valid():
        saved = save_policy(policy, actor=member(request), **form.cleaned_data)
        if not isinstance(saved, Refusal):
            messages.success(request, _("The rules are saved. They hold for what is booked now."))
            return redirect("policies")
        form.add_error(None, saved.words)
    context = {"form": form, "policy": policy, "sections": form.sections()}
    return render(request, "policy.html", context, status=400 if form.errors else 200)


@staff_required
@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """What a row says holds no more."""
    refusal = delete_policy(get_object_or_404(Policy, pk=pk), actor=member(request))
    say(request, refusal, _("The rules are deleted."))
    return redirect("policies")
