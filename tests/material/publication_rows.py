"""Rows of the table ``publication`` of one run, from counts of people, by the pass within the run."""

import json

import numpy as np

from tasks.metrics.publish.algorithm.populations import (
    ALL,
    Attribute,
    Base,
    Count,
    Event,
    People,
    Place,
    populations_of,
)
from tasks.metrics.publish.algorithm.primary import Losses, Request
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.metrics.publish.algorithm.suppression import suppress
from tasks.metrics.publish.measures import _known, _span_of

DENIED = "denied"


def publication_rows(people, profile, bases=(Base.SOURCE,)):
    """Of the attribute race.

    Args:
        people: group -> how many were denied and approved.
        profile: of disclosure control.
        bases: in which all of them are.
    """
    groups = tuple(people)
    kinds = [(groups.index(group), d, both[not d]) for group, both in people.items() for d in (True, False)]
    codes, denied, weights = (np.array(each) for each in zip(*kinds, strict=True))
    places = {Place(base, "lender"): np.ones(codes.size, bool) for base in bases}
    race = Attribute("race", ("race",), groups, codes)
    crowd = People({"race": codes}, (race,), places, {Event(DENIED, "lender"): denied}, weights=weights)
    counts = [Count(each, event) for each in populations_of(crowd) for event in ("", DENIED)]
    outcome = suppress(Request(crowd, POLICIES[profile], counts, Losses(crowd, frozenset())))
    known = _known(outcome.published)
    rows = [_row(entry, _span_of(known, entry.count)) for entry in outcome.entries]
    return rows + [_merged(merged, one) for merged in outcome.merged for one in merged.published if not one.count.rest]


def _row(entry, span):
    count = entry.count
    return {
        **{"protected_attribute": "race", "group": count.population.group, "part": 0, "reason": ""},
        **{"decision_maker": "lender", "base": count.population.base.value, "event": count.event, "groups": ""},
        **{"fate": entry.fate.value, "number": entry.number, "text": entry.text, "least": None, "largest": None},
        **span,
    }


def _merged(merged, one):
    first = merged.populations[0]
    return {
        **{"protected_attribute": "race", "group": ALL, "part": 0, "reason": "", "decision_maker": "lender"},
        **{"base": first.base.value, "event": one.count.event, "fate": "shown", "number": None, "text": ""},
        **{"groups": json.dumps([each.group for each in merged.populations]), "least": None, "largest": None},
        **{"low": int(one.low), "high": int(one.high), "rest_low": None, "rest_high": None},
    }
