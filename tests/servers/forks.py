"""A bad citizen: leaves a grandchild in a session of its own that keeps every descriptor."""

import os
import signal

from tests.servers.answering import serve

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    os._exit(0)
os.wait()
serve()
