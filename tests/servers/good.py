"""Answers as it should and ends at TERM."""

from answering import serve

serve()
