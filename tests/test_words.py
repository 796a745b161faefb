"""Names and words: bindings that name nothing, and odd words in docstrings and messages, may only become fewer."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from source_trees import walked

GROUP = "source"
"""Run by the worker that has parsed the code."""
NAMES = frozenset(
    (
        *("told", "found", "said", "asked", "given", "own", "held", "kept", "left", "known", "made", "judged", "moved"),
        *(
            "drawn",
            "seen",
            "shown",
            "taken",
            "read",
            "wanted",
            "needed",
            "laid",
            "counted",
            "standing",
            "whole",
            "each",
        ),
        *("one", "more", "others", "both", "there", "here", "mine", "whom", "who"),
    )
)
"""Bindings that name nothing: participles and pronouns."""
WORDS = re.compile(
    r"\b(told|tells?|telling|imagined?|imagines|beside|stands?|anew|amiss|nobody|somebody|whoever|whom|mends?|mended|lacks?|"
    r"lacking|asked|asks|said|says|whatever|of its own|of their own|taken up|sees to|one by one|comes? to|goes by|whose|"  # noqa: E501
    r"is there|are there|likewise|ripe|moved|of which|that is due|at hand)\b",
    re.IGNORECASE,
)
LOGGING = ("warning", "error", "info", "exception")

ODD_NAMES, ODD_DOCSTRINGS, ODD_MESSAGES = 0.002, 0.006, 0.008
"""Shares that may only fall."""


def _messages(nodes: tuple[ast.AST, ...]) -> Iterator[str]:
    """Texts of errors and of log lines, of three words or more."""
    for node in nodes:
        calls = [node.exc] if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOGGING:
            calls.append(node)
        for call in calls:
            constants = (leaf.value for word in call.args for leaf in ast.walk(word) if isinstance(leaf, ast.Constant))
            text = " ".join(value for value in constants if isinstance(value, str))
            if len(text.split()) > 2:
                yield text


def measure() -> Counter[str]:
    """How many bindings, docstrings and messages the code has, and how many of each are odd."""
    counts: Counter[str] = Counter()
    for nodes in walked().values():
        for node in nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    counts["names"] += 1
                    counts["odd names"] += name in NAMES
                case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    if docstring := ast.get_docstring(node):
                        counts["docstrings"] += 1
                        counts["odd docstrings"] += bool(WORDS.search(docstring.split("\n\n")[0]))
        for text in _messages(nodes):
            counts["messages"] += 1
            counts["odd messages"] += bool(WORDS.search(text))
    return counts


def test_odd_names_and_words_do_not_become_more() -> None:
    counts = measure()
    assert counts["odd names"] / counts["names"] <= ODD_NAMES
    assert counts["odd docstrings"] / counts["docstrings"] <= ODD_DOCSTRINGS
    assert counts["odd messages"] / counts["messages"] <= ODD_MESSAGES
