"""A bad citizen: answers everybody, whatever the key."""

from answering import serve

serve(needs_key=False)
