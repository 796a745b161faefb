"""Delivery of one message to several addresses, by apprise: three tries, and the reason where it does not arrive."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from apprise import Apprise  # loads its plugins, and most runs send nothing

WAITS: Final = (0.0, 1.0, 4.0)
"""Seconds before each try."""
_MOST_REASON: Final = 300


@dataclass(frozen=True)
class Delivered:
    """What came back from one address."""

    tries: int
    reason: str = ""
    """Why the message did not arrive; empty where it did."""

    @property
    def outcome(self) -> str:
        """In one word or two."""
        return "not delivered" if self.reason else "sent"


def deliver(addresses: Mapping[str, str], subject: str, text: str) -> dict[str, Delivered]:
    """Send a message to named addresses; the second and third try are for those that it did not reach.

    Args:
        addresses: name -> address, as apprise writes it.
        subject: of the message.
        text: plain text.

    Returns:
        What came back from each, by name. It raises nothing: what an address or a library raises is its reason.
    """
    found: dict[str, Delivered] = {}
    for tried, wait in enumerate(WAITS, 1):
        left = [name for name in addresses if name not in found or found[name].reason]
        if left:
            time.sleep(wait)
        for name in left:
            found[name] = Delivered(tried, _sent(addresses[name], subject, text))
    return found


def _sent(address: str, subject: str, text: str) -> str:
    """Send once; why it did not arrive, empty where it did."""
    from apprise import LogCapture, NotifyFormat

    try:
        with LogCapture(level=logging.WARNING, fmt="%(message)s") as output:  # type: ignore[no-untyped-call]
            service = _service()
            if not service.add(address):
                return "no service of apprise has an address like this one; see docs/alerts.md"
            if "format=" not in address:  # some services make HTML of it, in which no line breaks
                for each in service.servers:
                    each.notify_format = NotifyFormat.TEXT
            if service.notify(body=text, title=subject, body_format=NotifyFormat.TEXT):
                return ""
            return _reason(output.getvalue(), address)
    except Exception as error:
        return _reason(f"{type(error).__name__}: {error}", address)


def _service() -> "Apprise":
    from apprise import Apprise, AppriseAsset

    asset = AppriseAsset(
        app_id="Evenhand",
        app_desc="Evenhand",
        app_url="",
        async_mode=False,
        interpret_emojis=False,
        secure_logging=True,
    )
    return Apprise(asset=asset)


def _reason(said: str, address: str) -> str:
    """What apprise logged, in one line and without the address or its password."""
    words = " ".join(said.split()) or "the service refused it, and gave no reason"
    for secret in _secrets(address):
        words = words.replace(secret, "***")
    return words[:_MOST_REASON]


def _secrets(address: str) -> list[str]:
    """The address, and its user, password and path, which are tokens in many services."""
    parts = urlsplit(address)
    tokens = [
        parts.password,
        parts.username,
        *parts.path.split("/"),
        *(p.split("=", 1)[-1] for p in parts.query.split("&")),
    ]
    plain = [token for token in tokens if token and len(token) >= 6 and "@" not in unquote(token)]
    return [address, *plain, *map(unquote, plain)]
