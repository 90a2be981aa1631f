"""Answers as it should and ends at TERM."""

from tests.servers.answering import serve

serve()
