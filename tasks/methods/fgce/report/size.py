"""Sentences that read a group's measure against its size-matched reference, and never claim more than the range gives.

Too few units, a withheld value and an undefined one each get a sentence of their own: none of them reads as a pass.
"""

from tasks.reporting.material import Measure, Shown, View
from tasks.reporting.numbers import missing_words, written


def reading(view: View, measure: str, shown: Shown) -> list[str]:
    """One sentence for every group but the reference."""
    return [_sentence(view, group, measure, shown) for group in view.groups if group != view.reference]


def _sentence(view: View, group: str, measure: str, shown: Shown) -> str:
    own = view.get(group, measure)
    subject = f"{group}: the {shown.words}"
    if own is None:
        return f"{subject} is not computed: the group has no factuals. Nothing can be said, and that is no pass."
    if own.value is None:
        return f"{subject} is {missing_words(own)}. Nothing can be said, and that is no pass."
    text = written(own.value, shown.unit)
    if own.n is not None and own.n < view.minimum:
        return f"{subject} ({text}) rests on fewer than {view.minimum} factuals: too few to say, and that is no pass."
    matched = view.get(group, f"{measure}_size_matched")
    if matched is None or matched.value is None or matched.low is None or matched.high is None:
        return f"{subject} ({text}) has no size-matched reference, so an effect of size cannot be told from any other."
    difference = view.get(group, f"{measure}_size_matched_difference")
    return f"{subject} ({text}) {_against(own.value, matched, difference, shown, view.reference)}"


def _against(value: float, matched: Measure, difference: Measure | None, shown: Shown, reference: str) -> str:
    low, high = (written(x or 0.0, shown.unit) for x in (matched.low, matched.high))
    named = f"the range of the size-matched {reference} subsamples ({low} to {high}"
    named += f"; {matched.n} draws)" if matched.n else ")"
    side = (value > (matched.high or 0.0)) - (value < (matched.low or 0.0))
    if side:
        where, than = ("above", "higher") if side > 0 else ("below", "lower")
        if difference is None or difference.low is None or difference.high is None:
            return f"lies {where} {named}, but how far sampling error reaches is not known: nothing can be said."
        if difference.low <= 0 <= difference.high:
            return f"lies {where} {named}, but its own sampling error reaches into it: no difference can be told."
        return (
            f"lies {where} {named}: {than} than group size alone would lead one to expect. Why, this figure cannot say."
        )
    return f"lies inside {named}: not distinguishable from an effect of size."
