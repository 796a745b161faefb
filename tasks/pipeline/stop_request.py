"""A request to stop, which long work checks between its steps.

The command records the request on a signal (``flows.supervision.interruption``). A library that calls back into Python
may swallow Python's own KeyboardInterrupt; a recorded request remains for the next check.
"""


class _Request:
    made = False


def request_stop() -> None:
    """Record the request. A signal handler may call this at any moment, so it takes no lock."""
    _Request.made = True


def stop_requested() -> bool:
    """Whether the process was asked to stop."""
    return _Request.made


def raise_if_stopped() -> None:
    """Stop here if the process was asked to.

    Raises:
        KeyboardInterrupt: the process was asked to stop. It is no ``Exception``, so ordinary error handling lets it
            pass, and Prefect knows it.
    """
    if _Request.made:
        raise KeyboardInterrupt
