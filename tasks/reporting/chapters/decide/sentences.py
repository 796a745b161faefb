"""The sentences of the first page, from sentences.yaml: every text that it prints, by name.

A name has one form or several, the longest first: of those that fit a number of words the first is printed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

BANNED = re.compile(
    r"""\b(?:because|causes?d?|due\ to|bias(?:ed|es)?|unbiased|fair(?:ly|ness|er)?|unfair(?:ly|ness)?|discriminat\w*
    |prov(?:e|es|en|ed|ing)|significan\w*|counterfactual\w*|burdens?|infeasible|mediat\w+
    |fgce|cst|cec|gcfn|raguel|st|lpm|aipw|gan|scm)\b
    |\d[.,]?\d*\.\d\d""",
    re.IGNORECASE | re.VERBOSE,
)
"""What the first page, headlines and captions never say (report.md 3), and decimals beyond one."""


@cache
def sentences() -> Mapping[str, Any]:
    """The whole file, by part and name."""
    text = files(__package__).joinpath("sentences.yaml").read_text(encoding="utf-8")
    found: Mapping[str, Any] = yaml.safe_load(text)
    return found


def forms(part: str, name: str) -> tuple[str, ...]:
    """The forms of a sentence, the longest first.

    Raises:
        KeyError: there is no such sentence.
    """
    found = sentences()[part][name]
    return (found,) if isinstance(found, str) else tuple(found)


def said(part: str, name: str, /, **words: object) -> tuple[str, ...]:
    """The forms of a sentence with its places filled in."""
    return tuple(form.format(**words) for form in forms(part, name))


def texts() -> Iterator[str]:
    """Every text of the file."""
    yield from _texts(sentences())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    for each in value.values() if isinstance(value, Mapping) else value:
        yield from _texts(each)


def words(*written: str) -> int:
    """Number of words, as a browser's ``innerText`` has them."""
    return sum(len(text.split()) for text in written)


def fitting(candidates: Sequence[str], most: int) -> tuple[str, ...]:
    """The candidates of at most so many words, each shorter than the one before; the shortest where none fits."""
    found: list[str] = []
    for each in candidates:
        if words(each) <= most and (not found or words(each) < words(found[-1])):
            found.append(each)
    return tuple(found) or (min(candidates, key=words),)
