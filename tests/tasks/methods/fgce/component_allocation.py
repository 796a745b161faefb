"""The paper's way to the least cost of full coverage: one candidate after the other to the costliest component."""

import numpy as np

from tasks.methods.fgce.algorithm.covering import between, d0, refusal
from tasks.methods.fgce.algorithm.optima import NONE_COVERABLE, search


def allocate(parts, k, solver):
    """The least cost for all coverable rows as the paper finds it (section IV, full coverage).

    Every part is given one candidate, and then one more goes to the costliest part, as long as there are any; a part
    that its candidates cannot cover is infinitely costly. One that pays no more than its cheapest costs cannot gain.
    """
    tables = [search([part], solver) for part in parts if part.rows]
    if not tables:
        return refusal(NONE_COVERABLE)
    given, rows = [1] * len(tables), sum(table.rows for table in tables)
    found = [table.least(1, table.rows) for table in tables]
    while True:
        paid = [np.inf if np.isnan(one.value) else one.value for one in found]
        worst = int(np.argmax(paid))
        if sum(given) >= k or paid[worst] == d0(tables[worst].parts):
            break
        given[worst] += 1
        found[worst] = tables[worst].least(given[worst], tables[worst].rows)
    if sum(given) > k or np.isinf(paid[worst]):
        return refusal(f"k = {k} counterfactuals cannot cover {rows} of {rows} rows")
    numbers = [number for number, part in enumerate(parts) if part.rows]
    picks = [(number, column) for number, one in zip(numbers, found, strict=True) for _, column in one.picks]
    if all(one.exact for one in found):
        return between(paid[worst], paid[worst], picks, "")
    return between(paid[worst], d0(parts), picks, next(one.reason for one in found if one.reason))
