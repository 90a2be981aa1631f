"""Fills an installation that nobody uses yet."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from bookings.models import Booking
from gateway.models import UsageDueDay
from gateway.usage_days import roll_due_days
from lanes import clock
from lanes.demo import LANE
from lanes.models import Lane
from lanes.refusals import Refusal
from slotserve.demo.bookings import make_bookings
from slotserve.demo.company import Company, make_company
from slotserve.demo.history import make_history
from slotserve.demo.hooks import make_hooks
from slotserve.demo.house import make_house
from slotserve.demo.present import make_present
from slotserve.demo.scale import Demo, Scale


@transaction.atomic
def seed(scale: Scale, password: str) -> Company | Refusal:
    """Everything in one transaction. Refused (in_use) where there are bookings, members or lanes
    besides the demo lane and administrators."""
    if _is_used():
        return Refusal(
            "in_use",
            _(
                "This installation has members, bookings or lanes already: use an empty one, such "
                "as with SLOTSERVE_DATA=/tmp/demo."
            ),
        )
    demo = Demo(clock.database_now(), scale)
    company = make_company(demo, password)
    make_bookings(demo, company)
    make_history(demo, company)
    make_present(demo, company)
    make_house(demo, company)
    make_hooks(demo, company)
    roll_due_days(demo.now)
    while UsageDueDay.objects.exists():
        roll_due_days(demo.now)
    return company


def _is_used() -> bool:
    return (
        Booking.objects.exists()
        or User.objects.filter(is_staff=False).exists()
        or Lane.objects.exclude(slug=LANE).exists()
    )
