"""The sentence under the ladder, for the report and the terminal alike, and reasons in words; it loads no library."""

import re


def sentence(rv: float, strongest: str, of_denial: float | None, of_group: float | None) -> str:
    """What an unseen column has to explain to bring a difference to zero, and what the strongest control explains.

    Args:
        rv: Robustness value.
        strongest: The control that explains most of what is left of denial, in words; empty without any.
        of_denial: Share of what is left of denial that it explains.
        of_group: Share of what is left of group membership.
    """
    text = (
        f"It would take a column that explains {_percent(rv)} of what is left of denial and of group membership to "
        "bring this to zero"
    )
    if not strongest or of_denial is None or of_group is None:
        return f"{text}."
    return (
        f"{text}; the strongest one in the data, {strongest}, explains {_percent(of_denial)} and {_percent(of_group)}."
    )


def plain(reason: str) -> str:
    """A reason as it is read: ``too_few_events: ...`` without the underscores of its name."""
    return re.sub(r"(^|; )([a-z]+(?:_[a-z]+)+)(?=:)", lambda found: found[1] + found[2].replace("_", " "), reason)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
