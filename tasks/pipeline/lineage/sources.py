"""Digest of a module: its own shape, and the digests of the first-party modules that it imports instead of names.

Moving or renaming a module changes no key, and a fix changes the keys of everything that reaches it. Circular imports
are an error.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tasks.pipeline.lineage.kept import PLACE, Kept
from tasks.pipeline.lineage.shape import Import, Shape, shape_of

FIRST_PARTY = ("flows", "tasks", "schemas")
UNREACHED = ("tasks.lake", "tasks.pipeline.lineage")
"""Packages and modules that move results and do not make them, with all below. The quarantine does make them:
``stage`` and ``validation`` count."""


class Sources:
    """The files of a tree of packages; to import one of them, or its package, could take seconds (torch)."""

    def __init__(
        self,
        root: Path,
        packages: tuple[str, ...] = FIRST_PARTY,
        unreached: tuple[str, ...] = UNREACHED,
        kept: Path = PLACE,
    ) -> None:
        """See which modules there are.

        Args:
            root: the directory of the packages.
            packages: the packages that are first-party.
            unreached: modules of theirs that decide no result, with all below.
            kept: the file in which shapes are kept.

        Raises:
            ModuleNotFoundError: one of the unreached is not there: it was moved, and would count where it is now.
        """
        self._packages = packages
        self._files = {
            _name(path.relative_to(root)): path for package in packages for path in (root / package).rglob("*.py")
        }
        if missing := [name for name in unreached if name not in self._files]:
            raise ModuleNotFoundError(f"no first-party module {missing[0]!r}, which keys should not reach")
        self._unreached = frozenset(
            name for name in self._files if any(f"{name}.".startswith(f"{each}.") for each in unreached)
        )
        self._shapes = Kept(kept, packages)
        self._digests: dict[str, str] = {}

    def digests(self, names: Iterable[str]) -> list[str]:
        """Hex digests of modules, each with all that it reaches.

        Raises:
            ModuleNotFoundError: one is not there.
            ImportError: modules import each other in a circle, or in a way that cannot be followed.
        """
        found = [self._digest(name, ()) for name in names]
        self._shapes.save()
        return found

    def _digest(self, name: str, path: tuple[str, ...]) -> str:
        if name in self._unreached:
            return "unreached"
        if name in path:
            raise ImportError(
                f"modules import each other in a circle: {' -> '.join([*path[path.index(name) :], name])}"
            )
        if name not in self._digests:
            shape, path = self._shape(name), (*path, name)
            said = [
                shape.tree,
                *(" ".join(self._import_words(each, path, named=False)) for each in shape.used),
                "placed",
                *(" ".join(self._import_words(each, path)) for each in shape.placed),
                "unused",
                *sorted(" ".join(self._import_words(each, path)) for each in shape.unused),
            ]
            self._digests[name] = hashlib.sha256("\n".join(said).encode()).hexdigest()
        return self._digests[name]

    def _import_words(self, asked: Import, path: tuple[str, ...], *, named: bool = True) -> Iterator[str]:
        """What an import brings: a module by its digest alone, or a name of one; and what that is called here.

        A package's own file counts where a name is taken from it, not where a module is: else whatever it imports
        could import nothing of the package.
        """
        inner = asked.module if asked.name is None else f"{asked.module}.{asked.name}"
        if inner in self._files:
            yield self._digest(inner, path)
        else:
            yield from (self._digest(asked.module, path), inner.rpartition(".")[2])
        if named or inner not in self._files:
            yield asked.bound

    def _shape(self, name: str) -> Shape:
        if name not in self._files:
            raise ModuleNotFoundError(f"no first-party module {name!r}")
        source = self._files[name].read_bytes()
        found = self._shapes.find(source)
        if found is None:
            try:
                found = shape_of(source, self._packages)
            except ImportError as error:
                raise ImportError(f"{self._files[name]}: {error}") from error
            self._shapes.add(source, found)
        return found


def _name(path: Path) -> str:
    """The dotted name of a file below the root."""
    return ".".join(path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts)
