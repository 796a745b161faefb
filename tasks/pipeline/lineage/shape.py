"""Shape of one Python file for keys: its syntax tree without docstrings, layout, and paths of first-party modules.

An import of a first-party module leaves the tree and is listed. Uses of the name that it binds become the number of
that import, in the order of first use. So the tree depends neither on the path of an imported module, nor on its local
name, nor on the place of the statement. ``sources`` adds the content of the imports.

A name with a second binding stays in the tree, with the place of each of its imports.
"""

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Import(NamedTuple):
    """A first-party import: a name of a module, or with no name the module itself; and what it is called here."""

    module: str
    name: str | None
    bound: str


@dataclass(frozen=True)
class Shape:
    """What one file says, and what it imports."""

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
    unused = {each for found in statements.values() for each in found} - {*used, *placed}
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
    for found in statements.values():
        for each in found:
            imported[each.bound].add(each)
    others = {name for node in ast.walk(tree) for name in _bound(node, statements)}
    if "__all__" in others:
        return {}
    alone = {name: found.pop() for name, found in imported.items() if len(found) == 1 and name not in others}
    return {name: each for name, each in alone.items() if "." not in name}  # `import a.b` binds a


def _bound(node: ast.AST, statements: _Statements) -> Iterator[str]:
    """Every name in a node, unless the node only reads it: a few that it does not bind do no harm."""
    if isinstance(node, _IMPORTS):
        yield from (alias.asname or alias.name.split(".")[0] for alias in _foreign(node, statements[node]))
    elif not (isinstance(node, ast.alias) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))):
        kind = type(node).__name__
        for field in node._fields:
            value = getattr(node, field, None)
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, str) and (kind, field) not in _NO_BINDING:
                    yield each


def _foreign(node: ast.Import | ast.ImportFrom, ours: tuple[Import, ...]) -> list[ast.alias]:
    """The parts of an import that are not first-party."""
    modules = {each.module for each in ours}
    if isinstance(node, ast.ImportFrom):
        return [] if ours else node.names
    return [alias for alias in node.names if alias.name not in modules]


class _Writer:
    """Writes a tree as tokens, of which no two trees have the same."""

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
            for each in value:
                self._write_value(each)
            self.tokens.append("]")
        else:
            self.tokens.append(repr(value))

    def _write_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """What a statement has beside the imports that are numbered or unused."""
        ours = self._statements[node]
        for each in ours:
            if each.bound not in self._numbered:
                self.tokens.append(f"import here {len(self.placed)}")
                self.placed.append(each)
        if foreign := _foreign(node, ours):
            self.tokens.append("Import")
            self._write_value(foreign)


def _is_idle(node: ast.AST) -> bool:
    """Whether a node is a docstring, another text that stands alone, or ``pass``."""
    alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return alone or isinstance(node, ast.Pass)
