"""What holds of docstrings: every module that one names is where the docstring says."""

import ast
import re
from functools import cache
from pathlib import Path

from conftest import REPOSITORY
from source_trees import TOPS, module_of, walked

from flows.operations.dictionary import TABLES
from tasks.plan import STAGES

GROUP = "source"
"""Run by the worker that has parsed the code."""
FILES = sorted(path for top in TOPS for path in (REPOSITORY / top).rglob("*.py"))
DOTTED = re.compile(r"``((?:evenhand|flows|research|schemas|tasks)(?:\.\w+)+)``")
BARE = re.compile(r"``(\w+)``")
IN = re.compile(r"\b(?:is|are|in) in ``(\w+)``|\bin ``(\w+)``(?=[.,;]| and)")
FOLDERS = {"algorithm", "bench", "report", "reproduction", "stage"}
"""What several folders have, each its own."""


def name_of(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}
LEAVES = {module.rpartition(".")[2] for module in MODULES}
WORDS = {*STAGES, *(table.name for table in TABLES)}


def defined(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Names that statements define, with the body of each class."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in body:
        match statement:
            case ast.ClassDef(name=name, body=inner):
                found[name] = inner
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found[name] = []
            case ast.Assign(targets=targets):
                found.update(
                    {node.id: [] for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
                )
            case ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = []
    return found


def resolves(dotted: str) -> bool:
    """Whether a dotted path is a module, or something that one defines."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        if (module := ".".join(parts[:length])) in MODULES:
            body = module_of(MODULES[module]).body
            for name in parts[length:]:
                if name not in (names := defined(body)):
                    return False
                body = names[name]
            return True
    return False


@cache
def identifiers(path: Path) -> frozenset[str]:
    """Names in the code of a file, and its texts of one word: settings and their values."""
    found: set[str] = set()
    for node in walked()[path]:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.alias(name=name):
                found.add(name.rpartition(".")[2])
            case ast.Constant(value=str(text)) if text.isidentifier():
                found.add(text)
    return frozenset(found)


@cache
def settings() -> frozenset[str]:
    return frozenset().union(*(identifiers(path) for path in FILES if path.is_relative_to(REPOSITORY / "schemas")))


def strays(path: Path, docstring: str) -> list[str]:
    """Bare names in a module's docstring that are meant as modules and are none beside or below it."""
    module = name_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    meant = {word for word in BARE.findall(docstring) if word in LEAVES}
    meant |= {word for pair in IN.findall(docstring) for word in pair if word}
    known = WORDS | FOLDERS | identifiers(path) | settings()
    return sorted(word for word in meant - known if not {f"{package}.{word}", word} & MODULES.keys())


def test_every_path_in_a_docstring_is_a_module_or_what_it_defines() -> None:
    named = {name_of(path): DOTTED.findall(path.read_text()) for path in FILES}
    gone = {module: [dotted for dotted in found if not resolves(dotted)] for module, found in named.items()}
    assert {module: found for module, found in gone.items() if found} == {}


def test_a_module_that_a_docstring_names_alone_is_beside_it() -> None:
    found = {name_of(path): strays(path, ast.get_docstring(module_of(path)) or "") for path in FILES}
    assert {module: words for module, words in found.items() if words} == {}


def test_paths_that_are_gone_are_found() -> None:
    assert resolves("tasks.lake.store.Lake.publish")
    assert not resolves("tasks.lake.warehouse")
    assert not resolves("tasks.lake.store.Warehouse")
    radius = MODULES["tasks.feasibility_graph.algorithm"]
    assert strays(radius, "Loops over pairs are in ``feasibility_loops``, rows in ``graph``.") == ["feasibility_loops"]
    assert strays(radius, "Here belong kernels. See ``presence``.") == ["presence"]
