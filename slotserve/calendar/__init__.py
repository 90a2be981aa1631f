"""The calendar: which bookings and bands of loading fall into a span of days, ready to be shown.

`spans` and `condensing` are pure; `reading` asks the database; `feed` says it to the page's script.
"""
