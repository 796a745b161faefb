"""Disclosure control: which numbers of a run are shown, rounded, given as a range or withheld.

Scope: arithmetic on arrays. Reading tables and writing the published tables is the stage's. What belongs where:

- ``populations``: whom a number is about (``Population``), counts of them, and the rows of ``People``.
- ``profiles``, ``digits``: thresholds and rounding of counts; digits of other numbers.
- ``audit.column_tree``, ``audit.cells``: counts as sums of the smallest sets of people that they tell apart.
- ``audit.programme``, ``audit.auditor``: what a reader can tell of a count, by linear and integer programmes.
- ``primary``, ``losses``, ``ledger``, ``suppression``: what is withheld for its own size, and what with it.
- ``outcome``: the request, and the fate of every number.

A stage makes ``People`` (a row for each record of the source, and of earlier runs over the same rows), lists the counts
that any output may print, calls ``suppress`` once, and looks up every number by its population:

>>> import numpy as np
>>> from tasks.metrics.publish.algorithm.primary import Losses
>>> from tasks.metrics.publish.algorithm.primary import Request
>>> from tasks.metrics.publish.algorithm.populations import (
...     Attribute, Base, Count, Event, People, Place, populations_of)
>>> from tasks.metrics.publish.algorithm.profiles import POLICIES
>>> from tasks.metrics.publish.algorithm.suppression import suppress

Of 318 applicants 3 are Asian and 15 of other groups; a third of all are denied.

>>> race = np.repeat([0, 1, 2], [300, 15, 3])
>>> people = People(
...     columns={"race": race},
...     attributes=(Attribute("race", ("race",), ("white", "other", "Asian"), race),),
...     bases={Place(Base.SOURCE, "lender"): np.ones(318, dtype=bool)},
...     events={Event("denied", "lender"): np.arange(318) % 3 == 0},
... )
>>> counts = [Count(each, event) for each in populations_of(people) for event in ("", "denied")]
>>> outcome = suppress(Request(people, POLICIES["public"], counts, Losses(people), exact=True))
>>> for entry in outcome.entries:
...     print(entry.count.population.group, entry.count.event or "n", entry.fate.value, entry.number)
All n shown 318
All denied shown 106
white n shown 300
white denied shown 100
other n withheld_with None
other denied withheld_with None
Asian n withheld_small None
Asian denied withheld_small None

Were the 15 shown, the 3 would be what is left of 318. Now a reader can tell no more than this:

>>> [(each.count.population.group, each.count.event, each.least, each.largest) for each in outcome.intervals]
[('other', '', 1, 17), ('Asian', '', 1, 17), ('Asian', 'denied', 0, 6), ('Asian', 'denied', 0, 12)]
>>> [(tuple(each.group for each in merged.populations), merged.numbers) for merged in outcome.merged]
[(('Asian', 'other'), {'': 18, 'denied': 6})]
"""
