"""The code, parsed and walked once for all tests of one worker that read it: their files name the group ``source``."""

import ast
import gc
from functools import cache
from pathlib import Path

from conftest import REPOSITORY

TOPS = ("evenhand", "research", "flows", "tasks", "schemas")


@cache
def walked() -> dict[Path, tuple[ast.AST, ...]]:
    """Each file of our code with all nodes of its tree; the first one is the module."""
    gc.disable()  # some million nodes, none of them garbage: not to be looked through each time
    try:
        files = sorted(file for top in TOPS for file in (REPOSITORY / top).rglob("*.py"))
        nodes = {file: nodes_of(file) for file in files}
        gc.freeze()
    finally:
        gc.enable()
    return nodes


def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file that may lie anywhere."""
    return tuple(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


def module_of(file: Path) -> ast.Module:
    """The tree of a file of our code."""
    module = walked()[file][0]
    assert isinstance(module, ast.Module)
    return module
