"""Measures in words: the name of a measure, which may be a comparison of another."""

from collections.abc import Mapping

from tasks.metrics.algorithm.measures import SUFFIXES
from tasks.reporting.material import Shown

COMPARED = {
    "_size_matched_difference": "difference from the size-matched reference",
    "_size_matched": "size-matched reference",
    "_null_difference": "difference from permuted labels",
    "_null": "labels permuted",
    "_difference": "difference",
    "_ratio": "ratio",
}
"""What a comparison is called, by the suffix of its measure."""


def names(measure: str, shown: Mapping[str, Shown]) -> tuple[str, Shown]:
    """A measure in words, and how its base is written; a method's own words where it gave some."""
    if measure in shown:  # a measure may end like a comparison: FACE's ratio
        return shown[measure].words, shown[measure]
    for suffix in SUFFIXES:
        base = measure.removesuffix(suffix)
        if base != measure:
            known = shown.get(base, Shown(base.replace("_", " "), "number"))
            return f"{known.words}, {COMPARED[suffix]}", known
    unknown = Shown(measure.replace("_", " "), "number")
    return unknown.words, unknown
