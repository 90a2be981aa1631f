"""The page of the self-check, for administrators."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from slotserve.selfcheck.findings import has_trouble, verdict, worst_first
from slotserve.selfcheck.service import self_check
from slotserve.web.access import staff_required


@staff_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """What is in order and what is not, as of now."""
    findings = self_check()
    context = {
        "findings": worst_first(findings),
        "verdict": verdict(findings),
        "has_trouble": has_trouble(findings),
    }
    return render(request, "self_check.html", context)
