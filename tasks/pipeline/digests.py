"""Digests of code: the shape of each module and of all that it imports, and library versions."""

import ast
import hashlib
import json
import os
import platform
import stat
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

# --------------------------------------------------------------------------------------------------------------------
# Shape of one Python file for keys: its syntax tree without docstrings, layout, and paths of first-party modules.
#
# An import of a first-party module leaves the tree and is listed. Uses of the name that it binds become the number of
# that import, in the order of first use. So the tree depends neither on the path of an imported module, nor on its
# local name, nor on the place of the statement. ``sources`` adds the content of the imports.
#
# A name with a second binding stays in the tree, with the place of each of its imports.


class Import(NamedTuple):
    """A first-party import: a name of a module, or with no name the module itself; and what it is called here."""

    module: str
    name: str | None
    bound: str


@dataclass(frozen=True)
class Shape:
    """The shape of one file: its code digest and its imports."""

    tree: str
    """Digest of the tree."""
    used: tuple[Import, ...]
    """Imports that the tree numbers."""
    placed: tuple[Import, ...]
    """Imports of ambiguous names, in the order of their statements."""
    unused: tuple[Import, ...]
    """Imports that nothing in the file uses by name: other files may."""


def shape_of(source: bytes, packages: tuple[str, ...]) -> Shape:
    """The shape of a file.

    Args:
        source: the file's bytes.
        packages: the packages that are first-party.

    Raises:
        ImportError: it has an import that keys do not follow: a relative one, or one of every name.
    """
    tree = ast.parse(source)
    statements = {node: tuple(_imports(node, packages)) for node in ast.walk(tree) if isinstance(node, _IMPORTS)}
    writer = _Writer(statements, _numbered(tree, statements))
    writer.write(tree)
    used, placed = tuple(writer.numbers), tuple(writer.placed)
    unused = {imported for of_statement in statements.values() for imported in of_statement} - {*used, *placed}
    digest = hashlib.sha256("\n".join(writer.tokens).encode()).hexdigest()
    return Shape(digest, used, placed, tuple(sorted(unused, key=repr)))


_IMPORTS = (ast.Import, ast.ImportFrom)
_Statements = dict[ast.Import | ast.ImportFrom, tuple[Import, ...]]
_LEFT_OUT = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields that follow from the rest or decide nothing."""
_NO_BINDING = frozenset({("Attribute", "attr"), ("keyword", "arg"), ("Constant", "value")})
"""Fields with a text that is not the name of anything in the file's own scopes."""


def _imports(node: ast.Import | ast.ImportFrom, packages: tuple[str, ...]) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] in packages:
                yield Import(alias.name, None, alias.asname or alias.name)
    elif node.level:
        raise ImportError(f"line {node.lineno}: keys do not follow a relative import; write the whole name")
    elif node.module and node.module.split(".")[0] in packages:
        for alias in node.names:
            if alias.name == "*":
                raise ImportError(f"line {node.lineno}: keys do not follow an import of every name; write the names")
            yield Import(node.module, alias.name, alias.asname or alias.name)


def _numbered(tree: ast.Module, statements: _Statements) -> dict[str, Import]:
    """The names that one import binds and nothing else does, and that the file does not promise to others."""
    imported = defaultdict(set)
    for statement_imports in statements.values():
        for statement_import in statement_imports:
            imported[statement_import.bound].add(statement_import)
    other_names = {name for node in ast.walk(tree) for name in _bound(node, statements)}
    if "__all__" in other_names:
        return {}
    alone = {
        name: candidates.pop()
        for name, candidates in imported.items()
        if len(candidates) == 1 and name not in other_names
    }
    return {name: only_import for name, only_import in alone.items() if "." not in name}  # `import a.b` binds a


def _bound(node: ast.AST, statements: _Statements) -> Iterator[str]:
    """Every name in a node, unless the node only reads it: a few that it does not bind do no harm."""
    if isinstance(node, _IMPORTS):
        yield from (alias.asname or alias.name.split(".")[0] for alias in _foreign(node, statements[node]))
    elif not (isinstance(node, ast.alias) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))):
        kind = type(node).__name__
        for field in node._fields:
            value = getattr(node, field, None)
            for text in value if isinstance(value, list) else (value,):
                if isinstance(text, str) and (kind, field) not in _NO_BINDING:
                    yield text


def _foreign(node: ast.Import | ast.ImportFrom, ours: tuple[Import, ...]) -> list[ast.alias]:
    """The parts of an import that are not first-party."""
    modules = {own_import.module for own_import in ours}
    if isinstance(node, ast.ImportFrom):
        return [] if ours else node.names
    return [alias for alias in node.names if alias.name not in modules]


class _Writer:
    """Writes a tree as tokens that are unique to it."""

    def __init__(self, statements: _Statements, numbered: dict[str, Import]) -> None:
        self.tokens: list[str] = []
        self.numbers: dict[Import, int] = {}
        self.placed: list[Import] = []
        self._statements, self._numbered = statements, numbered

    def write(self, node: ast.AST) -> None:
        """Add a node and all below it."""
        if isinstance(node, ast.Name) and node.id in self._numbered:
            number = self.numbers.setdefault(self._numbered[node.id], len(self.numbers))
            self.tokens.append(f"import {number}")
        elif isinstance(node, _IMPORTS) and self._statements[node]:
            self._write_import(node)
        elif not _is_idle(node):
            self._write_fields(node)

    def _write_fields(self, node: ast.AST) -> None:
        self.tokens.append(type(node).__name__)
        for field in node._fields:
            if field not in _LEFT_OUT:
                self._write_value(getattr(node, field, None))

    def _write_value(self, value: object) -> None:
        if isinstance(value, ast.AST):
            self.write(value)
        elif isinstance(value, list):
            self.tokens.append("[")
            for part in value:
                self._write_value(part)
            self.tokens.append("]")
        else:
            self.tokens.append(repr(value))

    def _write_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Writes the parts of a statement other than its numbered or unused imports."""
        ours = self._statements[node]
        for own_import in ours:
            if own_import.bound not in self._numbered:
                self.tokens.append(f"import here {len(self.placed)}")
                self.placed.append(own_import)
        if foreign := _foreign(node, ours):
            self.tokens.append("Import")
            self._write_value(foreign)


def _is_idle(node: ast.AST) -> bool:
    """Whether a node is a docstring, another text without effect, or ``pass``."""
    alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return alone or isinstance(node, ast.Pass)


# --------------------------------------------------------------------------------------------------------------------
# Cache of the shapes of source files between processes: parsing some 400 files takes two seconds.
#
# The cache lies with Python's own compiled files, and may be deleted at any time. Entries are keyed by the sha256 of
# the source, and valid only for the same Python and the same reader. A damaged file, or one that another user could
# have changed, is ignored.


PLACE = Path(__file__).parent / "__pycache__" / f"shapes.{sys.implementation.cache_tag}.json"
_MOST = 3000
"""Shapes kept: several times the files of the project. Beyond it, only those that the last process asked for are."""


class Kept:
    """The shapes in a file, and those that are to be added to it."""

    def __init__(self, place: Path, packages: tuple[str, ...]) -> None:
        """Read what is kept.

        Args:
            place: the file.
            packages: the packages that are first-party in these shapes.
        """
        self._place = place
        reader = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
        self._by = [sys.version, reader, *packages]
        self._kept = self._read()
        self._asked: dict[str, Shape] = {}
        self._is_new = False

    def find(self, source: bytes) -> Shape | None:
        """The shape of a source, if it is kept."""
        cached_shape = self._kept.get(_key(source))
        if cached_shape is not None:
            self._asked[_key(source)] = cached_shape
        return cached_shape

    def add(self, source: bytes, new_shape: Shape) -> None:
        """Keep the shape of a source, once it is saved."""
        self._kept[_key(source)] = self._asked[_key(source)] = new_shape
        self._is_new = True

    def save(self) -> None:
        """Replace the file atomically if there is something to add; do nothing if it cannot be written."""
        if not self._is_new:
            return
        shapes = self._kept if len(self._kept) <= _MOST else self._asked
        body = json.dumps(
            {"by": self._by, "shapes": {key: astuple(cached_shape) for key, cached_shape in shapes.items()}}
        )
        with suppress(OSError):
            self._place.parent.mkdir(exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=self._place.parent)
            with os.fdopen(handle, "w") as file:
                file.write(f"{_key(body.encode())}\n{body}")
            Path(draft).replace(self._place)
            self._is_new = False

    def _read(self) -> dict[str, Shape]:
        try:
            mode = self._place.stat().st_mode
            checksum, _, body = self._place.read_text().partition("\n")
        except (OSError, UnicodeDecodeError):
            return {}
        if mode & (stat.S_IWGRP | stat.S_IWOTH) or checksum != _key(body.encode()):
            return {}
        payload = json.loads(body)
        if payload["by"] != self._by:
            return {}
        return {key: _shape(*parts) for key, parts in payload["shapes"].items()}


def _key(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _shape(tree: str, *imports: list[tuple[str, str | None, str]]) -> Shape:
    used, placed, unused = (tuple(Import(*parts) for parts in some) for some in imports)
    return Shape(tree, used, placed, unused)


# --------------------------------------------------------------------------------------------------------------------
# Digest of a module: its own shape, and the digests of the first-party modules that it imports instead of names.
#
# Moving or renaming a module changes no key, and a fix changes the keys of everything that reaches it. Circular imports
# are an error.


FIRST_PARTY = ("research", "flows", "tasks", "schemas")
UNREACHED = ("tasks.lake", "tasks.pipeline.digests", "tasks.pipeline.resources")
"""Packages and modules that move results and do not make them, with all below. The quarantine does make them:
``stage`` and ``validation`` count."""


class Sources:
    """The files of a tree of packages; to import one of them, or its package, could take seconds (torch)."""

    def __init__(
        self,
        root: Path,
        packages: tuple[str, ...] = FIRST_PARTY,
        unreached: tuple[str, ...] = UNREACHED,
        cache_path: Path = PLACE,
    ) -> None:
        """See which modules there are.

        Args:
            root: the directory of the packages.
            packages: the packages that are first-party.
            unreached: modules of theirs that decide no result, with all below.
            cache_path: the file in which shapes are kept.

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
            name for name in self._files if any(f"{name}.".startswith(f"{prefix}.") for prefix in unreached)
        )
        self._shapes = Kept(cache_path, packages)
        self._digests: dict[str, str] = {}

    def digests(self, names: Iterable[str]) -> list[str]:
        """Hex digests of modules, each with all that it reaches.

        Raises:
            ModuleNotFoundError: one is not there.
            ImportError: modules import each other in a circle, or in a way that cannot be followed.
        """
        digests = [self._digest(name, ()) for name in names]
        self._shapes.save()
        return digests

    def _digest(self, name: str, path: tuple[str, ...]) -> str:
        if name in self._unreached:
            return "unreached"
        if name in path:
            raise ImportError(
                f"modules import each other in a circle: {' -> '.join([*path[path.index(name) :], name])}"
            )
        if name not in self._digests:
            shape, path = self._shape(name), (*path, name)
            lines = [
                shape.tree,
                *(" ".join(self._import_words(used_import, path, named=False)) for used_import in shape.used),
                "placed",
                *(" ".join(self._import_words(placed_import, path)) for placed_import in shape.placed),
                "unused",
                *sorted(" ".join(self._import_words(unused_import, path)) for unused_import in shape.unused),
            ]
            self._digests[name] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        return self._digests[name]

    def _import_words(self, statement: Import, path: tuple[str, ...], *, named: bool = True) -> Iterator[str]:
        """What an import brings: a module by its digest alone, or a name of one; and what that is called here.

        A package's own file counts where a name is taken from it, not where a module is: else whatever it imports
        could import nothing of the package.
        """
        inner = statement.module if statement.name is None else f"{statement.module}.{statement.name}"
        if inner in self._files:
            yield self._digest(inner, path)
        else:
            yield from (self._digest(statement.module, path), inner.rpartition(".")[2])
        if named or inner not in self._files:
            yield statement.bound

    def _shape(self, name: str) -> Shape:
        if name not in self._files:
            raise ModuleNotFoundError(f"no first-party module {name!r}")
        source = self._files[name].read_bytes()
        shape = self._shapes.find(source)
        if shape is None:
            try:
                shape = shape_of(source, self._packages)
            except ImportError as error:
                raise ImportError(f"{self._files[name]}: {error}") from error
            self._shapes.add(source, shape)
        return shape


def _name(path: Path) -> str:
    """The dotted name of a file below the root."""
    return ".".join(path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts)


# --------------------------------------------------------------------------------------------------------------------
# Lineage of a result: the code and the libraries that made it.
#
# The digest of the code covers every first-party module that a stage reaches through its imports: a fix in an algorithm
# changes the key of every stage that uses it; a comment, a moved or a renamed module changes none.


DECIDES_RESULTS = (
    "numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow", "duckdb", "networkx",
    "jinja2", "pulp", "torch", "fairlearn", "skops", "onnx", "xlsxwriter",
)  # fmt: skip


@cache
def versions() -> dict[str, str]:
    """Versions of the interpreter and of the libraries that decide numbers and pages; `absent` of one of an extra."""
    installed = {}
    for name in DECIDES_RESULTS:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            installed[name] = "absent"
    return {"python": platform.python_version(), **installed}


@cache
def sources() -> Sources:
    """The code of this process, read once."""
    return Sources(Path(__file__).parents[2])


def code_digest(modules: Iterable[str], resources: Iterable[Path] = ()) -> str:
    """Hex digest of the first-party code reached from modules, and of the bytes of resource files."""
    digest = hashlib.sha256()
    for module_digest in sorted(set(sources().digests(modules))):
        digest.update(f"{module_digest}\n".encode())
    for path in sorted(resources):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
