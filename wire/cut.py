"""The end of a connection to a server that nobody has to trust."""

import contextlib
import socket
from threading import Timer


class Cut:
    """Cuts a connection after so many seconds, whatever it is at, unless it was cancelled: whoever
    waits for the server wakes up, as if it had gone. A limit for each wait alone does not: a server
    that says a byte now and then would be listened to for ever."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection.dup()  # TLS takes the other over
        self._timer = Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """It is closed."""
        self._timer.cancel()
        self._connection.close()

    def _cut(self) -> None:
        with self._connection, contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
