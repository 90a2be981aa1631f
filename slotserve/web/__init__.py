"""The pages: log in, lanes, book, my bookings, tokens, administration."""
