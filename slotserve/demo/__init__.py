"""A made-up company's lanes, members, bookings and history, for trying pages and for measuring
them. The same seed and moment give the same company. Written straight into the tables: none of it
has ever run."""
