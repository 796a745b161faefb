"""Settings of `evenhand serve`."""

import ipaddress
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemas.errors import SpecError

PORT: Final = 8321
UPLOAD_MB: Final = 200
SHORTEST_TOKEN: Final = 32
"""Letters of a token that is given: 32 random bytes have 43."""
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""One machine's usual names for itself."""
_HTTP, _HTTPS = 80, 443
"""Ports that browsers leave out of Host and Origin."""


@dataclass(frozen=True)
class Settings:
    """Where pages are served, to which readers, and what the readers may do."""

    lake: str
    host: str = "127.0.0.1"
    port: int = PORT
    behind_tls: str = ""
    """Name under which a proxy with TLS serves the pages; empty without one."""
    by: str = ""
    """Name of the person who reads, notes and signs; empty if unknown."""
    sign: bool = False
    restricted: bool = False
    start: bool = False
    """Whether audits may be begun here."""
    files: str = ""
    """Folder of tables that may be chosen; empty without one."""
    upload_mb: int = UPLOAD_MB
    """Most megabytes of a table that is sent."""
    runs_at_once: int = 1
    """Runs at the same time; others wait."""

    @property
    def most_upload(self) -> int:
        """Most bytes of a table that is sent."""
        return self.upload_mb * 10**6

    @property
    def secure(self) -> bool:
        """Whether browsers reach the pages by TLS."""
        return bool(self.behind_tls)

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may name as its Host: the name of the proxy, else the address that is listened on."""
        if self.behind_tls:
            return _named(self.behind_tls.lower(), _HTTPS)
        address = _in_address(self.host)
        names = _LOOPBACK if address in _LOOPBACK else (address,)
        return frozenset().union(*(_named(f"{name}:{self.port}", _HTTP) for name in names))

    @property
    def probed(self) -> frozenset[str]:
        """Host names that a liveness probe may use: behind a proxy it may come from this machine, too."""
        return self.hosts.union(*(_named(f"{name}:{self.port}", _HTTP) for name in _LOOPBACK))

    @property
    def origins(self) -> frozenset[str]:
        """What a form may name as its Origin."""
        return frozenset(f"{'https' if self.secure else 'http'}://{host}" for host in self.hosts)

    @property
    def cookie(self) -> str:
        """Name of the cookie: browsers give cookies to every port of a host, and two servers may run side by side."""
        return f"__Host-evenhand-{self.port}" if self.secure else f"evenhand-{self.port}"

    @property
    def address(self) -> str:
        """Where the pages are, without the token."""
        if self.behind_tls:
            return f"https://{self.behind_tls}/"
        return f"http://{_in_address(self.host)}:{self.port}/"


def check(settings: Settings) -> None:
    """Raise if options do not go together.

    Raises:
        SpecError: an address beyond this machine without TLS; signing or rows of persons without a name; a folder of
            tables that is none, or that nothing can be begun of.
    """
    try:
        is_loopback = settings.host == "localhost" or ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        is_loopback = False
    if not settings.behind_tls and not is_loopback:
        raise SpecError(
            f"--host {settings.host} is reached from other machines, and the pages have no TLS: put a "
            "proxy with TLS before them and give its name with --behind-tls, or leave --host out"
        )
    for is_set, option in ((settings.sign, "--sign"), (settings.restricted, "--restricted")):
        if is_set and not settings.by:
            raise SpecError(f"{option} needs --as NAME: every entry of the log has an author")
    if settings.files and not settings.start:
        raise SpecError("--files names tables that audits are begun of; give --start, too")
    if settings.files and not Path(settings.files).is_dir():
        raise SpecError(f"--files {settings.files}: no such folder; give one that holds tables")
    name = settings.behind_tls
    if name and (name != name.strip() or "/" in name or not name.isascii()):
        raise SpecError(f"--behind-tls {name!r}: give the name that browsers ask for, such as audits.example.org")


def token_in(file: Path) -> str:
    """The token in a file that its owner alone can read.

    Raises:
        SpecError: there is no such file, others can read it, or the token is short.
    """
    try:
        mode, token = file.stat().st_mode, file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"--token-file {file}: no token can be read there ({error})") from error
    if stat.S_IMODE(mode) & 0o077:
        raise SpecError(f"--token-file {file} has the mode {stat.S_IMODE(mode):04o}; make it 0600: chmod 600 {file}")
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise SpecError(
            f"--token-file {file}: expected {SHORTEST_TOKEN} letters or more on one line; make one with "
            "`openssl rand -hex 32`"
        )
    return token


def _named(address: str, usual: int) -> frozenset[str]:
    """A name with its port, and without it where it is the usual one or none was given."""
    name, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        return frozenset({address, f"{address}:{usual}"})
    return frozenset({address, name}) if port == str(usual) else frozenset({address})


def _in_address(host: str) -> str:
    """A host as addresses have it: IPv6 shortened and in brackets."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower()
    return f"[{address}]" if address.version == 6 else str(address)
