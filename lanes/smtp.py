"""Mail over SMTP by a server that nobody has to trust: a connection has an end, and a mail that may
have arrived is told from one that has not.

`EMAIL_TIMEOUT` bounds each wait, but a server that says a byte now and then would be listened to
for ever. So a connection is cut after LONGEST_SECONDS, whatever it is at.
"""

import smtplib
import socket
from typing import Any

from django.core.mail.backends import smtp

from wire.cut import Cut

LONGEST_SECONDS = 30.0
END = b"\r\n.\r\n"


class InDoubtError(smtplib.SMTPException):
    """A whole mail was handed over and no answer came: it may have arrived."""


class _Bounded(smtplib.SMTP):
    """A connection that ends, and that knows whether a mail was handed over."""

    _end: Cut | None = None
    _is_handed_over = False

    def close(self) -> None:
        """End it, and with it its end."""
        if self._end is not None:
            self._end.cancel()
        super().close()

    def send(self, s: Any) -> None:
        """Note when the last byte of a mail is on its way."""
        super().send(s)
        self._is_handed_over = isinstance(s, bytes) and s.endswith(END)

    def getreply(self) -> tuple[int, bytes]:
        """The server's answer. Errors: InDoubtError after a whole mail, else smtplib's."""
        try:
            return super().getreply()
        except smtplib.SMTPServerDisconnected as error:
            if self._is_handed_over:
                raise InDoubtError(str(error)) from error
            raise

    def _get_socket(self, *arguments: Any) -> socket.socket:
        made: socket.socket = super()._get_socket(*arguments)  # type: ignore[misc]
        self._end = Cut(made, LONGEST_SECONDS)
        return made


class _BoundedTls(smtplib.SMTP_SSL, _Bounded):
    """The same with TLS from the first byte."""


class EmailBackend(smtp.EmailBackend):
    """Django's, with connections that end."""

    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        """What `open` makes."""
        return _BoundedTls if self.use_ssl else _Bounded
