"""A bad citizen: listens, and loads for ever."""

from answering import serve

serve(is_loaded=False)
