"""How many processes race, and how often. Apart, because the racers set Django up by themselves."""

PROCESSES = 12
ROUNDS = 8
RAW_ROUNDS = 3  # PostgreSQL finds a deadlock among bare inserts only after a second
QUOTA = 10  # bookings that a member may have ahead
LONGEST = 3  # hours of one slot
SERIES = 5  # bookings of one series
GIVEN = 3  # bookings ahead that an heir may have, her own among them
WAITERS = 9  # members who wait for an hour each
FREED = 6  # hours that are given back
