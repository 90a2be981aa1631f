"""What its administrators have laid down: rules of booking, an announcement, an invitation."""

from datetime import timedelta

from django.contrib.auth.models import Group

from bookings.policy_rows import ApprovalChoice, Policy
from lanes.models import Announcement, Level
from slotserve.demo.bookings import UNASKED, UNDECIDED
from slotserve.demo.cast import GROUPS
from slotserve.demo.company import Company
from slotserve.demo.scale import Demo
from slotserve.models import Invitation

HOUR = timedelta(hours=1)


def make_house(demo: Demo, company: Company) -> None:
    """Rules for everybody, for students, and for the largest lane; a planned maintenance."""
    students = Group.objects.get(name=GROUPS[-1])
    Policy.objects.create(
        max_minutes=8 * 60, ahead_days=30, week_hours=40, no_show_minutes=30, late_cancel_minutes=60
    )
    Policy.objects.create(group=students, max_minutes=240, day_hours=6, week_hours=16)
    for lane in company.lanes:
        if lane.needs_approval:
            Policy.objects.create(
                lane=lane,
                approval=ApprovalChoice.BEYOND,
                approval_hours=UNASKED // HOUR,
                pending_hours=UNDECIDED // HOUR,
            )
    Invitation.objects.create(
        digest=f"{demo.dice.getrandbits(256):064x}",
        email="newcomer@demo.invalid",
        created_by=company.administrator,
        created_at=demo.now - timedelta(hours=5),
        expires_at=demo.now + timedelta(days=7),
    )
    Announcement.objects.create(
        text="Friday 18:00 to 20:00: new switches in the server room; slots may be interrupted.",
        level=Level.WARNING,
        starts_at=demo.now - timedelta(hours=2),
        ends_at=demo.now + timedelta(days=4),
        made_by=company.administrator,
    )
