"""A bad citizen: lives, and listens to nobody."""

import signal

while True:
    signal.pause()
