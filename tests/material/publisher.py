"""A real HTTP server on the loopback that publishes files and, as told, gets into trouble while it sends them."""

import gzip
import ipaddress
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Trouble = Callable[["_Handler", "Published"], bool]
"""Met by one request, before the file is sent; tells whether it has answered that request itself."""


@dataclass
class Published:
    """A file of the server. Each trouble meets one request, in order; the requests after them are served."""

    body: bytes
    etag: str | None = '"1"'
    modified: str | None = None
    kind: str | None = "application/zip"
    ranges: bool = True
    chunked: bool = False
    packed: bool = False
    """Whether it is compressed for the way, although nobody asked for that."""
    location: str | None = None
    troubles: list[Trouble] = field(default_factory=list)


@dataclass
class Publisher:
    """Files by their path, the requests that came, and the address under which it all is."""

    files: dict[str, Published] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    def ranges(self) -> list[str | None]:
        """The header Range of each request."""
        return [headers.get("range") for _, headers in self.asked]


@contextmanager
def publisher(certificate: Path | None = None) -> Iterator[Publisher]:
    """Serve on a free loopback port until the block ends; with TLS where a file has a certificate and its key."""
    publishing = Publisher()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"publisher": publishing}))
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    publishing.url = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield publishing
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def certified(place: Path) -> Path:
    """A file with a key and a certificate of this machine, that it signed itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    of_machine = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = builder.add_extension(of_machine, critical=False).sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(pem, plain, serialization.NoEncryption())
    place.write_bytes(private + made.public_bytes(pem))
    return place


def cut(after: int) -> Trouble:
    """The connection ends after so many bytes of what was announced."""
    return lambda handler, published: handler.send(published, only=after)


def status(code: int, body: bytes = b"", kind: str = "text/plain", retry_after: str | None = None) -> Trouble:
    """An answer with no file in it."""

    def answer(handler: "_Handler", _published: Published) -> bool:
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Retry-After": retry_after}
        return handler.answer(code, headers, body)

    return answer


def hang_up(handler: "_Handler", _published: Published) -> bool:
    """The connection ends without an answer."""
    handler.close_connection = True
    return True


def becomes(body: bytes, etag: str | None) -> Trouble:
    """The file is another one from this request on."""

    def replace(_handler: "_Handler", published: Published) -> bool:
        published.body, published.etag = body, etag
        return False

    return replace


def other_piece(handler: "_Handler", published: Published) -> bool:
    """A piece that was not asked for."""
    end = len(published.body)
    headers = {"Content-Range": f"bytes 7-{end - 1}/{end}", "ETag": published.etag, "Content-Length": str(end - 7)}
    return handler.answer(206, headers, published.body[7:])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    publisher: Publisher

    def do_GET(self) -> None:
        self.publisher.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
        published = self.publisher.files.get(self.path)
        if published is None:
            status(404, b"<html><title>Nothing here</title></html>", "text/html")(self, Published(b""))
        elif published.location is not None:
            self.answer(302, {"Location": published.location, "Content-Length": "0"}, b"")
        elif not (published.troubles and published.troubles.pop(0)(self, published)):
            self.send(published)

    def send(self, published: Published, only: int | None = None) -> bool:
        content = gzip.compress(published.body, mtime=0) if published.packed else published.body
        start, size = self._start(published), len(content)
        if start > 0 and start >= size:
            return self.answer(416, {"Content-Range": f"bytes */{size}", "Content-Length": "0"}, b"")
        headers = {"Content-Type": published.kind, "ETag": published.etag, "Last-Modified": published.modified}
        if start:
            headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
        if published.packed:
            headers["Content-Encoding"] = "gzip"
        body = content[start:]
        if published.chunked:
            headers["Transfer-Encoding"] = "chunked"
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        else:
            headers["Content-Length"] = str(len(body))
        self.close_connection = only is not None
        return self.answer(206 if start else 200, headers, body[:only])

    def _start(self, published: Published) -> int:
        """First byte that is asked for; 0 where the file has changed since, as RFC 9110 has it."""
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked is None or not published.ranges:
            return 0
        current = self.headers.get("If-Range") in (None, published.etag, published.modified)
        return int(asked[1]) if current else 0

    def answer(self, code: int, headers: dict[str, str | None], body: bytes) -> bool:
        self.send_response(code)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        return True

    def log_message(self, *_: object) -> None:
        """Say nothing: the tests look at what was asked."""
