"""Sends a message to addresses in a separate process: a web hook without an end holds neither an audit nor its memory.

The process follows no redirect, reads little of an answer, and is killed where one address takes too long. As a
program, ``python -m flows.outcome.alert_process``, this module is that process.
"""

import json
import logging
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import IO, Any, Final, cast
from urllib.parse import unquote, urlsplit

import flows
from tasks.scoring.model_reader.protocol import limit

SECONDS: Final = 30.0
"""Of the clock for one address."""
_LOADING_SECONDS: Final = 300.0
"""Until the process has loaded what it needs."""
MOST_ANSWER: Final = 64 * 1024
"""Bytes that are read of an answer."""
_ADDRESSES: Final = 2 * 10**9
"""Bytes of memory that the process may reserve."""
_MOST_REASON: Final = 300
_MODULE: Final = "flows.outcome.alert_process"


def send_apart(addresses: Mapping[str, str], subject: str, text: str, seconds: float = SECONDS) -> dict[str, str]:
    """Send a message once to each of some named addresses; why it did not arrive, empty where it did, by name.

    Args:
        addresses: name -> address, as apprise writes it.
        subject: of the message.
        text: plain text.
        seconds: for each address.
    """
    reasons: dict[str, str] = {}
    while len(reasons) < len(addresses):
        remaining = {name: address for name, address in addresses.items() if name not in reasons}
        results = _answers(remaining, subject, text, seconds)
        reasons |= results
        if len(results) < len(remaining):  # the next address ended the process, or took too long
            name = next(name for name in remaining if name not in results)
            reasons[name] = f"it took longer than {seconds:g} s, or ended the process that sends"
    return reasons


def _answers(addresses: Mapping[str, str], subject: str, text: str, seconds: float) -> dict[str, str]:
    """What came back, until a process is over or is killed."""
    order = json.dumps({"addresses": addresses, "subject": subject, "text": text})
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    environment = os.environ | {"PYTHONPATH": str(Path(flows.__file__).parents[1])}
    command = [sys.executable, "-P", "-m", _MODULE]  # without modules of the working directory
    reasons: dict[str, str] = {}
    with subprocess.Popen(command, env=environment, text=True, start_new_session=True, **pipes) as process:  # noqa: S603
        patience = threading.Timer(_LOADING_SECONDS, process.kill)
        try:
            patience.start()
            with suppress(BrokenPipeError):
                cast("IO[str]", process.stdin).write(f"{order}\n")
                cast("IO[str]", process.stdin).flush()
            for line in cast("IO[str]", process.stdout):
                patience.cancel()
                patience = threading.Timer(seconds, process.kill)
                patience.start()
                reasons |= json.loads(line)
        finally:
            patience.cancel()
            process.kill()
    return reasons


# --------------------------------------------------------------------------------------------------------------------
# The process.


def main() -> None:
    """Send to the addresses of the order on the input; a line for each, after an empty one once all is loaded."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_sender, daemon=True).start()
    _read_little()
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_AS, _ADDRESSES)
    from apprise import Apprise  # noqa: F401 loaded before the time of the first address begins

    lines.write("{}\n")
    lines.flush()
    for name, address in order["addresses"].items():
        reason = _sent(address, order["subject"], order["text"])
        lines.write(f"{json.dumps({name: reason})}\n")
        lines.flush()
    os._exit(0)


def _end_with_sender() -> None:
    """End with the process that started this one: its end closes the input."""
    sys.stdin.read()
    os._exit(1)


def _read_little() -> None:
    """Read no more than the beginning of an answer: apprise looks at its code, and puts its words into a message."""
    from requests import Session

    send = Session.send

    @wraps(send)
    def sending(session: Session, request: Any, **options: Any) -> Any:
        answer = send(session, request, **{**options, "stream": True, "allow_redirects": False})
        answer._content = answer.raw.read(MOST_ANSWER, decode_content=True)
        answer._content_consumed = True
        return answer

    Session.send = sending  # type: ignore[method-assign,assignment]


def _sent(address: str, subject: str, text: str) -> str:
    """Send once; why it did not arrive, empty where it did."""
    from apprise import Apprise, AppriseAsset, LogCapture, NotifyFormat

    try:
        with LogCapture(level=logging.WARNING, fmt="%(message)s") as output:  # type: ignore[no-untyped-call]
            asset = AppriseAsset(
                app_id="Evenhand",
                app_desc="Evenhand",
                app_url="",
                async_mode=False,
                interpret_emojis=False,
                secure_logging=True,
                http_redirects=False,
            )
            service = Apprise(asset=asset)
            if not service.add(address):
                return "no service of apprise has an address like this one; see docs/alerts.md"
            if "format=" not in address:  # some services make HTML of it, in which no line breaks
                for server in service:
                    server.notify_format = NotifyFormat.TEXT
            if service.notify(body=text, title=subject, body_format=NotifyFormat.TEXT):
                return ""
            return _reason(output.getvalue(), address)
    except Exception as error:
        return _reason(f"{type(error).__name__}: {error}", address)


def _reason(output: str, address: str) -> str:
    """What apprise logged, in one line and without the address.

    Its user, password and path, which are tokens in many services, are hidden, too.
    """
    parts = urlsplit(address)
    values = (p.split("=", 1)[-1] for p in parts.query.split("&"))
    tokens = [parts.password, parts.username, *parts.path.split("/"), *values]
    plain = [token for token in tokens if token and len(token) >= 6 and "@" not in unquote(token)]
    words = " ".join(output.split()) or "the service refused it, and gave no reason"
    for secret in (address, *plain, *map(unquote, plain)):
        words = words.replace(secret, "***")
    return words[:_MOST_REASON]


if __name__ == "__main__":
    main()
