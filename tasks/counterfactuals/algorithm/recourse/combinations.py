"""Sets of attributes in lexical order, compiled: the next set for offers and for the search in steps."""

import numba

from tasks.numerics.arrays import Longs


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def next_set(picked: Longs, size: int, count: int) -> bool:
    """Turn the first ``size`` of ``picked``, ascending places out of ``count``, into the next set; False at the end."""
    place = size - 1
    while place >= 0 and picked[place] == count - size + place:
        place -= 1
    if place < 0:
        return False
    picked[place] += 1
    for later in range(place + 1, size):
        picked[later] = picked[later - 1] + 1
    return True
