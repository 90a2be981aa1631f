"""A bad citizen: listens, and loads for ever."""

from tests.servers.answering import serve

serve(is_loaded=False)
