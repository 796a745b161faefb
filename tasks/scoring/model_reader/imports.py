"""Imports without what a library imports only because it is installed: half of the time and memory of a process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


class Without:
    """Says of some packages that they are not there."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Keep their names."""
        self.names = names

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        """Leave every other module to the finders that come after this one.

        Raises:
            ModuleNotFoundError: It is one of the packages.
        """
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(name)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Import as if these packages were not installed; afterwards they can be imported."""
    finder = Without(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
