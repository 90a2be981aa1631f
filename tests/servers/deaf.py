"""A bad citizen: does not hear TERM."""

import signal

from tests.servers.answering import serve

signal.signal(signal.SIGTERM, signal.SIG_IGN)
serve()
