"""Sentences that read a group's score against its floor, and against what the group scores with itself.

Too few pairs, a withheld value and an undefined one each get a sentence of their own: none of them reads as a pass, and
a score that is no larger than a yardstick does not either.
"""

from tasks.methods.cec.report.lookups import Pair, Reasons
from tasks.reporting.material import Measure
from tasks.reporting.numbers import count, interval_text, missing_words, value, written

HEADLINE = "cec_above_floor"
_NOTHING = "Nothing can be said, and that is no pass."


def readings(s: Reasons) -> tuple[str, ...]:
    """One sentence or more for every group; too few pairs, and nothing above the floor, are no pass."""
    return tuple(_reading(s, pair) for pair in s.headline)


def _reading(s: Reasons, pair: Pair) -> str:
    own, score = s.get(pair, HEADLINE), s.get(pair, "cec")
    if own is None:
        unmatched = s.get(pair, "unmatched_share")
        said = f" {unmatched_words(unmatched)}." if unmatched and unmatched.events else ""
        return f"{pair.group}: no pair could be compared.{said} {_NOTHING}"
    if own.value is None or own.n is None or score is None or score.value is None:
        return f"{pair.group}: CEC above floor is {missing_words(own)}. {_NOTHING}"
    said = f"{pair.group}: CEC is {written(score.value, 'number')} on {count(own.n)} pairs with {pair.to}"
    if own.n < s.minimum:
        return f"{said}, but fewer than {s.minimum} pairs are too few to say, and that is no pass."
    return f"{said}. {_against(own, s.get(pair, 'cec_floor'))}{_within(s, pair)}{_beside(s, pair)}"


def _against(own: Measure, floor: Measure | None) -> str:
    """The score against its floor; the reader is told if it is no more than that."""
    if own.value is None or own.low is None or own.high is None or floor is None or floor.value is None:
        return f"How far sampling error reaches from the floor is not known. {_NOTHING}"
    said = f"The matching floor is {written(floor.value, 'number')}"
    apart = f"{written(abs(own.value), 'number')} {interval_text(own, 'number')}"
    if own.low <= 0 <= own.high:
        return (
            f"{said}: not distinguishable from what financial features alone would give "
            f"({value(own, 'number')}). That does not show that the reasons are the same."
        )
    if own.value < 0:
        return (
            f"{said}, and CEC lies below it ({value(own, 'number')}): the model's reasons differ less than those of a "
            "model of the financial features alone. That does not show that they are the same."
        )
    return (
        f"{said}, and CEC lies {apart} above it: the reasons differ by more than the financial features alone would "
        "have them differ. Why, this figure cannot say."
    )


def _within(s: Reasons, pair: Pair) -> str:
    """The score against that of the same applicants with matches of their own group."""
    own, above = s.get(pair, "cec_within_group"), s.get(pair, "cec_above_within_group")
    if own is None or above is None or None in (own.value, above.value, above.low, above.high):
        words = missing_words(own) if own is None or own.value is None else "without an interval"
        return (
            f" CEC with matches of their own group is {words}, so that what any two applicants differ by is not known."
        )
    said = f" With matches of their own group CEC is {written(own.value or 0.0, 'number')}"
    if above.n is not None and above.n < s.minimum:
        return f"{said}, but of fewer than {s.minimum} applicants: too few to say, and that is no pass."
    apart = f"{written(abs(above.value or 0.0), 'number')} {interval_text(above, 'number')}"
    if (above.low or 0.0) <= 0 <= (above.high or 0.0):
        return f"{said}: across groups it is not distinguishable from that, which is no pass."
    if (above.value or 0.0) < 0:
        smaller = f"across groups it is smaller ({value(above, 'number')})"
        return f"{said}, and {smaller}. That does not show that the reasons are the same."
    return f"{said}: across groups the reasons lie {apart} further apart than within."


def _beside(s: Reasons, pair: Pair) -> str:
    """Decisions and hidden differences, in one sentence, as far as they are printed."""
    flips, hidden = s.get(pair, "flip_share"), s.get(pair, "regime_share", regime="B")
    if flips is None or flips.value is None or hidden is None or hidden.value is None:
        return ""
    return (
        f" {written(hidden.value, 'rate')} of the pairs have the same decision for different reasons "
        f"(theta = {s.settings.theta:g}), and {written(flips.value, 'rate')} are decided on differently."
    )


def unmatched_words(m: Measure) -> str:
    """How many applicants of a group have no match."""
    return f"{count(m.events or 0)} of {count(m.n or 0)} applicants have no match"
