"""nginx and Caddy with the example files of docs/proxies/, on ports of their own."""

import contextlib
import datetime
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from slotserve.stack.parts import ROOT
from tests.ports import free_port
from tests.running import eventually

EXAMPLES = ROOT / "docs" / "proxies"
NAMES = ("gpu.example.org", "api.gpu.example.org")
NGINX_AROUND = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/log warn;
events {{ worker_connections 256; }}
http {{
    access_log {folder}/access; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2;
    fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    include {folder}/slotserve.conf;
}}
"""


class NotInstalledError(Exception):
    """This machine lacks the program; .ci/run installs it."""


@contextlib.contextmanager
def running(name: str, folder: Path, gateway: int, web: int, **changes: str) -> Iterator[str]:
    """The proxy before these ports; answers the API's address. `changes` go into its file."""
    program = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        raise NotInstalledError(f"{name} is not installed")
    port = free_port()
    make = _nginx if name == "nginx" else _caddy
    argv = make(program, folder, example(name, gateway, web, changes), port)
    environment = os.environ | {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    environment["XDG_CONFIG_HOME"] = str(folder)
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(argv, env=environment, stdout=said, stderr=said)
    try:
        eventually(lambda: _listens(port) or process.poll() is not None, f"{name} listens", 60)
        assert process.poll() is None, (folder / "said").read_text()
        yield f"{'https' if name == 'nginx' else 'http'}://{NAMES[1]}:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # somebody's connection keeps it
            process.kill()
            process.wait()


def example(name: str, gateway: int, web: int, changes: dict[str, str]) -> str:
    """The file, with the test's ports in place of the product's."""
    text = (EXAMPLES / {"nginx": "nginx.conf", "caddy": "Caddyfile"}[name]).read_text()
    given = {"127.0.0.1:8001": f"127.0.0.1:{gateway}", "127.0.0.1:8000": f"127.0.0.1:{web}"}
    for old, new in (given | changes).items():
        assert old in text, f"the example says no more {old}"
        text = text.replace(old, new)
    return text


def _nginx(program: str, folder: Path, text: str, port: int) -> list[str]:
    write_certificate(folder)
    text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    text = text.replace("listen 80;", f"listen 127.0.0.1:{free_port()};")
    text = text.replace("/etc/ssl/slotserve", str(folder))
    (folder / "slotserve.conf").write_text(text)
    (folder / "nginx.conf").write_text(NGINX_AROUND.format(folder=folder))
    os.chmod(folder, 0o711)  # its worker may be another user
    return [program, "-c", str(folder / "nginx.conf"), "-p", str(folder)]


def _caddy(program: str, folder: Path, text: str, port: int) -> list[str]:
    for name in NAMES:
        text = text.replace(f"\n{name} {{", f"\nhttp://{name}:{port} {{\n\tbind 127.0.0.1")
    file = folder / "Caddyfile"
    file.write_text(text.replace("\n{\n", "\n{\n\tadmin off\n\tauto_https off\n", 1))
    return [program, "run", "--config", str(file), "--adapter", "caddyfile"]


def write_certificate(folder: Path) -> None:
    """One that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAMES[0])])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(each) for each in NAMES])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    signed = made.add_extension(names, critical=False).sign(key, hashes.SHA256())
    (folder / "fullchain.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "privkey.pem").write_bytes(private)


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0
