"""A bad citizen: answers everybody, whatever the key."""

from tests.servers.answering import serve

serve(needs_key=False)
