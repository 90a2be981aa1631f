"""A model server without a model: /health for all, everything else for those with the key."""

import fcntl
import os
import socket
import sys
import threading


def answer(
    connection: socket.socket, is_loaded: bool, needs_key: bool, props: bytes = b"{}"
) -> None:
    """Answer one request with these props and close."""
    with connection:
        request = connection.recv(65536).decode()
        path = request.split(" ")[1]
        key = f"Authorization: Bearer {os.environ.get('TEST_API_KEY')}"
        if path == "/hang":
            connection.recv(65536)  # until the client leaves
            return
        status = "200 OK" if is_loaded else "503 Service Unavailable"
        if is_loaded and needs_key and path != "/health" and key not in request:
            status = "401 Unauthorized"
        length = f"Content-Length: {len(props)}"
        head = f"HTTP/1.1 {status}\r\n{length}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + props)


def tell_start() -> None:
    """Write our number down, or DOUBLE when the lane has another server that still lives."""
    path = f"{os.environ['TEST_STARTS']}-{os.environ['SLOTSERVE_LANE']}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # kept until we end
        os.write(handle, f"{os.getpid()}\n".encode())
    except BlockingIOError:
        os.write(handle, b"DOUBLE\n")


def serve(*, is_loaded: bool = True, needs_key: bool = True, props: bytes = b"{}") -> None:
    """Listen where the environment says and answer for ever."""
    tell_start()
    place = (os.environ["TEST_ADDRESS"], int(os.environ["TEST_PORT"]))
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(place)
    listener.listen()
    sys.stdout.write(f"listening on {place}\n")
    sys.stdout.flush()
    while True:
        connection, _ = listener.accept()
        arguments = (connection, is_loaded, needs_key, props)
        threading.Thread(target=answer, args=arguments, daemon=True).start()
