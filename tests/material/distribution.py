"""Which tests have to go to the same worker: those that share a fixture of their file, so that it is made once.

All others go to whichever worker is free. xdist's own `loadgroup` would do, but xdist 3.8 groups nothing under pytest
9.2 (pytest-xdist issue 1386), and says nothing of it.
"""

import re
from functools import cache

from xdist.scheduler import LoadScopeScheduling

_SHARED = re.compile(r'scope="(?:module|class)"')
_NAMED = re.compile(r'^GROUP = "(\w+)"', re.MULTILINE)


class Groups(LoadScopeScheduling):
    """Hands out groups of tests, in the order of their collection."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return _group(str(self.config.rootpath / file)) or nodeid


@cache
def _group(file: str) -> str:
    """The group of all tests of a file: the one that it names, else itself if it has a fixture to share."""
    with open(file, encoding="utf-8") as source:  # noqa: PTH123
        text = source.read()
    named = _NAMED.search(text)
    if named:
        return named[1]
    return file if _SHARED.search(text) else ""
