"""Headers of every answer: nothing is loaded but our own style and drawings, nothing is kept, nobody frames it."""

import base64
import hashlib
import re
from collections.abc import Iterable
from typing import Final

POLICY: Final = (
    "default-src 'none'; style-src {style}; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
FIXED: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer browsers send `Origin: null` with a form
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


def policy(styles: Iterable[str] = ()) -> str:
    """The policy of a page; ``styles`` are the hashes of styles that stand inside it, as reports have them."""
    return POLICY.format(style=" ".join(["'self'", *styles]))


def styles_in(page: bytes) -> list[str]:
    """The styles inside a page as the policy names them; the page is one whose digest was checked."""
    digests = (hashlib.sha256(style).digest() for style in _STYLE.findall(page))
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in dict.fromkeys(digests)]
