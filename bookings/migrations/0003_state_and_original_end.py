from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("bookings", "0002_bookings_by_end")]

    operations = [
        migrations.AddConstraint(
            model_name="booking",
            constraint=models.CheckConstraint(
                condition=Q(state__in=("pending", "confirmed", "rejected", "cancelled")),
                name="bookings_state_known",
                violation_error_message="There is no such state of a booking.",
            ),
        ),
        migrations.AddConstraint(
            model_name="booking",
            constraint=models.CheckConstraint(
                condition=Q(original_end__gte=F("end")),
                name="bookings_original_end_last",
                violation_error_message="A release may only make a booking shorter.",
            ),
        ),
    ]
