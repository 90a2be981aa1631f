"""/ready/: whether this process can serve, for supervisors and load balancers."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from bookings.guards import guards_present


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and its overlap guards are in place, else 503."""
    try:
        connection.ensure_connection()
        is_guarded = guards_present()
    except DatabaseError:
        return JsonResponse({"ready": False, "reason": "no database"}, status=503)
    reason = "" if is_guarded else "the overlap guards are missing: run manage.py migrate"
    return JsonResponse({"ready": is_guarded, "reason": reason}, status=200 if is_guarded else 503)
