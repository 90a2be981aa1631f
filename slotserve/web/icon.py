"""The icon under the address where browsers look for it by themselves."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.views.decorators.http import require_safe


@require_safe
def icon(request: HttpRequest) -> HttpResponse:
    """For pages that name none: Django's own administration, files, answers of REST."""
    return redirect(static("slotserve/icon.svg"))
