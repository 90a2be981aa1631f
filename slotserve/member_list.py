"""Members as administrators see them: who they are, when they were here, what they hold."""

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group, User
from django.db.models import Count, Exists, IntegerField, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from bookings.models import Booking
from bookings.states import OCCUPYING
from gateway.models import ApiToken

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def members(words: str = "", group: Group | None = None) -> QuerySet[User]:
    """Everybody, by name, with `bookings_ahead`, `tokens_living`, `has_factor`, `token_used_at`.

    `words` are looked for in names and addresses. Two queries, with the groups.
    """
    now = timezone.now()
    ahead = Booking.objects.filter(owner=OuterRef("pk"), state__in=OCCUPYING, end__gt=now)
    living = ApiToken.objects.usable(now).filter(owner=OuterRef("pk"), session="")
    factors = Authenticator.objects.filter(user=OuterRef("pk"), type__in=FACTORS)
    used = ApiToken.objects.filter(owner=OuterRef("pk")).order_by().values("owner")
    found = User.objects.annotate(
        bookings_ahead=_count(ahead, "owner"),
        tokens_living=_count(living, "owner"),
        has_factor=Exists(factors),
        token_used_at=Subquery(used.annotate(last=Max("last_used_at")).values("last")),
    )
    for word in words.split():
        places = ("username", "email", "first_name", "last_name")
        is_there = Q()
        for place in places:
            is_there |= Q((f"{place}__icontains", word))
        found = found.filter(is_there)
    if group is not None:
        found = found.filter(groups=group)
    return found.prefetch_related("groups").order_by("-is_active", "username")


def _count(rows: "QuerySet[Booking] | QuerySet[ApiToken]", of: str) -> Coalesce:
    counted = rows.order_by().values(of).annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)
