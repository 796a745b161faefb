"""Receivers of alerts that speak SMTP and HTTP on free loopback ports, and keep every byte that they are sent."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.header import decode_header, make_header
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class Received:
    """What a receiver was sent."""

    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    sent: int = 0
    """Bytes of an answer without an end."""
    answers: list[int] = field(default_factory=list)
    """Codes of the next answers, the next one first; then all is well."""

    def subjects(self) -> list[str]:
        """Of mails, or titles of JSON posts, in the order of their arrival."""
        return [_subject(body) for body in self.bodies]

    def text(self) -> str:
        """All that was said, decoded."""
        return "\n".join(map(_text, self.bodies))


def _subject(body: bytes) -> str:
    if body.startswith(b"{"):
        return str(json.loads(body)["title"])
    return str(make_header(decode_header(message_from_bytes(body)["Subject"])))


def _text(body: bytes) -> str:
    if body.startswith(b"{"):
        return str(json.loads(body)["message"])
    parts = [part for part in message_from_bytes(body).walk() if not part.is_multipart()]
    return "\n".join(part.get_payload(decode=True).decode() for part in parts)


class _Post(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        received: Received = self.server.received  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        code = received.answers.pop(0) if received.answers else 200
        if code == 200:
            received.bodies.append(body)
        self.send_response(code)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


class _Mail:
    """Keeps what arrives; an answer that is given is its code."""

    def __init__(self, received: Received) -> None:
        self.received = received

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 the name of aiosmtpd
        code = self.received.answers.pop(0) if self.received.answers else 250
        if code == 250:
            self.received.bodies.append(envelope.content)
        return f"{code} done"


class _Hostile(BaseHTTPRequestHandler):
    """Leads elsewhere, answers without an end, or a byte of a head at a time."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        received: Received = self.server.received  # type: ignore[attr-defined]
        with suppress(OSError):
            if self.path.startswith("/elsewhere/"):
                self.send_response(307)
                self.send_header("Location", f"http://127.0.0.1:{self.path.split('/')[2]}/")
                self.end_headers()
            elif self.path == "/endless":
                self.send_response(200)
                self.end_headers()
                while self.wfile.write(b"0" * 2**16):
                    received.sent += 2**16
            else:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
                while self.wfile.write(b"0"):
                    time.sleep(0.2)

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


@contextmanager
def hostile_receiver() -> Iterator[Received]:
    """An HTTP server that does harm: ``/elsewhere/PORT``, ``/endless`` and ``/drip``."""
    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), _Hostile)) as received:
        yield received


@contextmanager
def _serving(server: Any) -> Iterator[Received]:
    server.received = Received(port=server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.received
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def web_receiver() -> Iterator[Received]:
    """An HTTP server."""
    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), _Post)) as received:
        yield received


@contextmanager
def mail_receiver() -> Iterator[Received]:
    """An SMTP server."""
    received = Received(port=_free_port())
    server = Controller(_Mail(received), hostname="127.0.0.1", port=received.port)
    server.start()
    try:
        yield received
    finally:
        server.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


RULES = """\
rules:
  - {when: outside, tell: desk}
  - {when: [data_quality, integrity, infrastructure, crashed, overdue], tell: [desk, pager]}
"""


def alerts_file(place: Path, mail: Received, web: Received, rules: str = RULES) -> Path:
    """The file that EVENHAND_ALERTS names: a desk that reads mail, and a pager that is posted to."""
    place.write_text(
        f"to:\n  desk: mailto://127.0.0.1:{mail.port}/?from=audit@example.org&to=desk@example.org&mode=insecure\n"
        f"  pager: json://127.0.0.1:{web.port}/evenhand\n{rules}"
    )
    place.chmod(0o600)
    return place
