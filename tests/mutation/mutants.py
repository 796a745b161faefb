"""Mutants of the numerical code: one expression of a file changed, and which line it is on.

A mutant is a syntax tree with one node replaced: a comparison, an operator, a number, a condition, or one of a pair of
functions such as ``min`` and ``max``. Left out are messages, names, types, declarations of imports and arguments that
change no result (``strict``, ``copy``).
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

AREAS: Final[Mapping[str, str]] = {
    **{
        f"tasks/methods/{name}/algorithm": f"tests/tasks/methods/{name}"
        for name in ("adjusted", "cec", "cst", "fgce", "gcfn", "raguel")
    },
    "tasks/metrics/algorithm": "tests/tasks/metrics",
    "tasks/numerics/statistics": "tests/tasks/numerics/statistics",
}
"""Folder of the code -> folder of the tests that mirror it."""

_UNCHANGED: Final = frozenset({"strict", "copy", "cache", "dtype", "rcond", "inline", "order", "checked"})
"""Arguments that choose no result."""
_COMPARISONS: Final[Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATORS: Final[Mapping[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_PAIRS: Final = [
    ("min", "max"),
    ("minimum", "maximum"),
    ("any", "all"),
    ("argmin", "argmax"),
    ("floor", "ceil"),
    ("mean", "sum"),
    ("sqrt", "square"),
    ("log", "exp"),
]
_FUNCTIONS: Final = {**dict(_PAIRS), **{other: name for name, other in _PAIRS}}


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    """Relative to the repository."""
    line: int
    number: int
    """Which change of the file, from 0."""
    before: str
    """The expression."""
    after: str
    within: str
    """Qualified name of the function whose body it changes; empty at the top of a module, in a class, for an argument's
    default, and in a function that numba compiles: there the module has to be loaded anew."""

    @property
    def name(self) -> str:
        """The same as long as the expressions of the file stay as they are."""
        return f"{self.file}#{self.number}"

    @property
    def area(self) -> str:
        """The folder of ``AREAS`` that the file is in."""
        return next(area for area in AREAS if self.file.startswith(f"{area}/"))


def mutants_of(source: str, file: str, numbers: Container[int] | None = None) -> Iterator[Mutant]:
    """Every change of a file, or those of some numbers, in the order of its syntax tree."""
    tree = ast.parse(source)
    within = dict(_functions(tree, ""))
    for number, (node, change) in enumerate(_changes(tree)):
        if numbers is None or number in numbers:
            changed = change(deepcopy(node))
            yield Mutant(file, node.lineno, number, _short(node), _short(changed), within.get(node, ""))


def mutated_tree(source: str, number: int) -> ast.Module:
    """The syntax tree of a file with one change made."""
    tree = ast.parse(source)
    node, change = next(pair for place, pair in enumerate(_changes(tree)) if place == number)
    changed = ast.copy_location(change(deepcopy(node)), node)

    class Exchange(ast.NodeTransformer):
        def visit(self, visited: ast.AST) -> ast.AST:
            return changed if visited is node else super().visit(visited)

    exchanged: ast.Module = ast.fix_missing_locations(Exchange().visit(tree))
    return exchanged


def drawn(repository: Path, count: int, seed: int) -> list[Mutant]:
    """Mutants drawn from all changes of all files with equal chances, and one of each line at most.

    The order is that of a hash of the seed, the file and the line's text, so that a change of other lines draws no
    other mutants.
    """
    places: list[tuple[str, str, int, int]] = []
    for area in AREAS:
        for path in sorted((repository / area).rglob("*.py")):
            file, source = path.relative_to(repository).as_posix(), path.read_text(encoding="utf-8")
            lines, of_text = source.splitlines(), Counter[str]()
            for number, (node, _) in enumerate(_changes(ast.parse(source))):
                text = f"{seed} {file} {lines[node.lineno - 1].strip()}"
                of_text[text] += 1
                order = hashlib.sha256(f"{text} {of_text[text]}".encode()).hexdigest()
                places.append((order, file, node.lineno, number))
    of_lines: dict[tuple[str, int], int] = {}
    for _, file, line, number in sorted(places):
        of_lines.setdefault((file, line), number)
    chosen = [(file, number) for (file, _), number in of_lines.items()][:count]
    mutants = {}
    for file in {file for file, _ in chosen}:
        source, numbers = (repository / file).read_text(encoding="utf-8"), {n for name, n in chosen if name == file}
        mutants |= {(file, mutant.number): mutant for mutant in mutants_of(source, file, numbers)}
    return [mutants[place] for place in chosen]


def at_lines(repository: Path, places: Iterable[str]) -> list[Mutant]:
    """Every change of the lines that are named, as FILE:LINE."""
    mutants: list[Mutant] = []
    for place in places:
        file, _, line = place.partition(":")
        source = (repository / file).read_text(encoding="utf-8")
        mutants += [mutant for mutant in mutants_of(source, file) if line in ("", str(mutant.line))]
    return mutants


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[ast.AST, str]]:
    """Every node in the body of a function, with the function's qualified name; functions in it belong to it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            if not any("njit" in ast.unparse(decorator) for decorator in child.decorator_list):
                yield from ((inner, f"{prefix}{child.name}") for part in child.body for inner in ast.walk(part))
        else:
            yield from _functions(child, prefix)


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


_Change = tuple[ast.expr | ast.stmt, Callable[[ast.AST], ast.AST]]


def _changes(tree: ast.AST) -> Iterator[_Change]:
    """Every node that can be changed with each of its changes; nothing inside of what has no result."""
    for node in _children(tree):
        yield from _changes_of(node)
        yield from _changes(node)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Children with results of their own."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "ctx", "bases"):
            continue
        children = value if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
                continue
            if isinstance(child, ast.keyword) and child.arg in _UNCHANGED:
                continue
            if isinstance(child, ast.AST):
                yield child


def _changes_of(node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.Compare):
        for other in _COMPARISONS[type(node.ops[0])]:
            yield node, _with(ops=[other(), *node.ops[1:]])
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        if type(node.op) in _OPERATORS:
            yield node, _with(op=_OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield node, _with(op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp):
        if not isinstance(node.operand, ast.Constant):
            yield node, lambda changed: changed.operand  # type: ignore[attr-defined]
    elif isinstance(node, ast.If | ast.IfExp):
        if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            yield node.test, lambda changed: ast.UnaryOp(ast.Not(), changed)  # type: ignore[arg-type]
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield node, _with(value=not node.value)
        elif isinstance(node.value, int):
            yield node, _with(value=node.value + 1)
        elif isinstance(node.value, float):
            yield node, _with(value=2 * node.value or 1.0)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _FUNCTIONS:
        yield node, _with(id=_FUNCTIONS[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in _FUNCTIONS:
        yield node, _with(attr=_FUNCTIONS[node.attr])


def _with(**fields: object) -> Callable[[ast.AST], ast.AST]:
    def change(node: ast.AST) -> ast.AST:
        for name, value in fields.items():
            setattr(node, name, value)
        return node

    return change
