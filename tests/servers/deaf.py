"""A bad citizen: does not hear TERM."""

import signal

from answering import serve

signal.signal(signal.SIGTERM, signal.SIG_IGN)
serve()
