"""The documentation: its Python reference, notebooks, and what every page has to keep (`make docs`, `make docs-check`).

``documentation.py write`` writes docs/reference/python.md, the marked picture and the notebooks, and ``stage FOLDER``
what the site is built of. ``check SITE`` holds the pages against their limits, and the built site against dead links
and requests to other hosts. ``run`` runs the code of tutorials and how-to pages, each page in a fresh folder; names of
pages choose some of them.
"""

import contextlib
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import yaml

import evenhand
from tasks.reporting.plain_words import reading_ease

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
MOST_WORDS: Final = 45_000
"""Of the pages in the navigation that people write."""
MOST_OF_A_TUTORIAL: Final = 1_500
EASE: Final = {"Tutorials": 60.0, "How-to": 60.0, "Explanation": 50.0}
"""Part of the navigation -> least reading ease of a page (Flesch)."""
GENERATED: Final = ("written by `make docs`", "written by `evenhand reproduce")
NOTEBOOKS: Final = ("first-audit", "audit-a-model", "read-a-report")
"""Tutorials that are notebooks, too."""
RETURNED: Final = (
    *(("evenhand.audits", name) for name in ("FirstPage", "Spec")),
    *(("evenhand.lakes", name) for name in ("LakeReader", "RunReader")),
)
"""Classes that nobody makes: results of functions."""
RUN: Final = ("sh", "python")
ENDED: Final = (0, 1, 3)
"""Exit codes of an audit that ended: within, outside, inconclusive."""
_BLOCK: Final = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


class Page(NamedTuple):
    """A page of the navigation."""

    part: str
    """Title of the part that it is in; empty for the first page."""
    path: Path

    @property
    def name(self) -> str:
        """Its path below docs."""
        return self.path.relative_to(DOCS).as_posix()

    @property
    def text(self) -> str:
        """Its Markdown."""
        return self.path.read_text(encoding="utf-8")

    @property
    def is_generated(self) -> bool:
        """Whether a command writes all of it: it says so in its first lines."""
        head = " ".join(self.text[:700].split()).lower()
        return any(words in head for words in GENERATED) and "<!--" not in head

    @property
    def words(self) -> int:
        """Words, those of code and tables among them, but no bars of tables and no signs alone."""
        return sum(any(map(str.isalnum, word)) for word in self.text.split())

    @property
    def ease(self) -> float:
        """Reading ease of its sentences; headings, tables and code are left out."""
        return reading_ease(prose(self.text))


def navigation() -> list[Page]:
    """The pages of mkdocs.yml, in order."""
    values = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return [Page(part, DOCS / path) for part, path in _below(values["nav"], "")]


def _below(entries: list[Any], part: str) -> Iterator[tuple[str, str]]:
    for entry in entries:
        if isinstance(entry, str):
            yield part, entry
            continue
        for title, value in entry.items():
            if isinstance(value, str):
                yield part, value
            else:
                yield from _below(value, part or title)


def prose(text: str) -> list[str]:
    """The paragraphs and points of a list, without marks, links and code."""
    text = _BLOCK.sub("\n\n", text)
    text = re.sub(r"<!--.*?-->|<[^>]+>", " ", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "it", text)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    plain = (" ".join(block.split()) for block in blocks)
    kept = (re.sub(r"^(?:[-*]|\d+\.) |[*_]{1,2}", "", block) for block in plain if not re.match(r"[#|]", block))
    return [block for block in kept if block]


# --------------------------------------------------------------------------------------------------------------------
# Code of a page: commands and Python, in order, as a reader would run them.


class Block(NamedTuple):
    """A block of code."""

    language: str
    code: str


def blocks(text: str) -> list[Block]:
    """All blocks of code of a page."""
    return [Block(language, inspect.cleandoc(f"\n{code}")) for _, language, code in _BLOCK.findall(text)]


def run_page(text: str, folder: Path) -> int:
    """Run the code of a page in a folder: commands line by line, Python with one set of names; returns the blocks run.

    Raises:
        RuntimeError: A command fails, or the code raises.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    given = {**os.environ, "PATH": paths, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    environment = {name: value for name, value in given.items() if name != "EVENHAND_LAKE"}
    for block in blocks(text):
        if block.language == "sh":
            for line in block.code.replace("\\\n", " ").splitlines():
                _command(line, folder, environment)
        elif block.language == "python":
            with contextlib.chdir(folder):
                try:
                    exec(compile(block.code, "page", "exec"), names)  # noqa: S102 code of our own pages
                except Exception as error:
                    raise RuntimeError(f"{type(error).__name__}: {error}, in\n{block.code}") from error
        count += block.language in RUN
    return count


def _command(line: str, folder: Path, environment: dict[str, str]) -> None:
    words = shlex.split(line, comments=True)
    if not words:
        return
    done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S602
    if done.returncode not in (ENDED if words[0] == "evenhand" else (0,)):
        raise RuntimeError(f"`{line}` ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-1500:]}")


def with_code() -> list[Page]:
    """Tutorials and how-to pages with code that runs."""
    chosen = (page for page in navigation() if page.part == "Tutorials" or page.name.startswith("how-to/"))
    return [page for page in chosen if any(block.language in RUN for block in blocks(page.text))]


def notebook(text: str) -> str:
    """A page as a notebook in percent format, which Jupytext and editors open; it holds no output."""
    cells, end = [], 0
    for match in _BLOCK.finditer(text):
        if match[2] not in RUN:
            continue
        cells += [_words(text[end : match.start()])]
        code = inspect.cleandoc(f"\n{match[3]}").rstrip()
        commented = "\n".join(f"# {line}".rstrip() for line in code.splitlines())
        cells += [f"# %%\n{code}\n" if match[2] == "python" else f'# %% language="bash"\n{commented}\n']
        end = match.end()
    cells += [_words(text[end:])]
    return "\n".join(cell for cell in cells if cell)


def _words(text: str) -> str:
    lines = [f"# {line}".rstrip() for line in text.strip().splitlines()]
    return "# %% [markdown]\n" + "\n".join(lines) + "\n" if lines else ""


MARKED: Final = (
    r'<text x="32" y="(?P<y>\d+)" font-size="23"',
    r'<text x="32" y="(?P<y>\d+)" font-size="13" fill="#1c2024" font-weight="600"',
    r'<text x="(?P<x>568)" y="(?P<y>\d+)" font-size="13" fill="#\w+" font-weight="600"',
    r'<text x="32" y="(?P<y>\d+)" font-size="14.5"',
    r'<text x="(?P<x>640)" y="(?P<y>\d+)" font-size="14.5"[^>]*>What this cannot show',
)
"""What the numbers on the picture of the first page mark: headline, question, state, chart, what it cannot show."""


def marked(picture: str) -> str:
    """The picture of the first page with a number at each of its parts."""
    circles = []
    for number, pattern in enumerate(MARKED, 1):
        match = re.search(pattern, picture)
        if match is None:
            raise ValueError(f"docs/first-page.svg has no part that matches {pattern}")
        x, y = int(match.groupdict().get("x") or 32) - 15, int(match["y"]) - 5
        circles.append(
            f'<g><circle cx="{x}" cy="{y}" r="11" fill="#1f3a5f"/><text x="{x}" y="{y + 5}" fill="#ffffff" '
            f'font-family="Arial, Helvetica, sans-serif" font-size="14" font-weight="600" text-anchor="middle">'
            f"{number}</text></g>"
        )
    return picture.rstrip().removesuffix("</svg>") + "\n".join(circles) + "\n</svg>\n"


# --------------------------------------------------------------------------------------------------------------------
# Reference of the package, from its docstrings.


def reference() -> str:
    """docs/reference/python.md."""
    head = (
        "# Python reference\n\nWritten by `make docs` from the docstrings of the package. Do not edit.\n"
        "[Evenhand in Python](../python.md) shows how to use it.\n"
    )
    parts = [head]
    for name in evenhand.__all__:
        thing = getattr(evenhand, name)
        if inspect.ismodule(thing):
            parts.append(f"\n## `{name}`\n\n{_text(inspect.getdoc(thing) or '')}\n")
            public = getattr(thing, "__all__", None) or [
                key for key, value in vars(thing).items() if getattr(value, "__module__", "") == thing.__name__
            ]
            for key in (key for key in public if not key.startswith("_")):
                parts += _entry(f"{name}.{key}", getattr(thing, key), 3)
        else:
            parts += _entry(name, thing, 2)
    for module, name in RETURNED:
        parts += _entry(name, getattr(import_module(module), name), 2)
    return "".join(parts)


def _entry(name: str, thing: Any, level: int) -> Iterator[str]:
    yield f"\n{'#' * level} `{name}`\n\n"
    is_error = inspect.isclass(thing) and issubclass(thing, BaseException)
    if not is_error and "(_" not in _signature(name, thing) and name not in {returned for _, returned in RETURNED}:
        yield f"```text\n{_signature(name, thing)}\n```\n\n"
    yield f"{_text(inspect.getdoc(thing) or '')}\n"
    if not inspect.isclass(thing) or is_error:
        return
    for key, value in sorted(_members(thing).items()):
        if isinstance(value, property):
            yield f"\n**`{key}`**: {_text(inspect.getdoc(value) or '')}\n"
        else:
            function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            yield f"\n**`{_signature(key, function, method=not isinstance(value, staticmethod))}`**\n\n"
            yield f"{_text(inspect.getdoc(function) or '')}\n"


def _members(thing: type) -> dict[str, Any]:
    """Methods and properties of a class that our packages define."""
    members: dict[str, Any] = {}
    for base in reversed(thing.__mro__):
        if base.__module__.split(".")[0] == "evenhand":
            members.update(
                (key, value)
                for key, value in vars(base).items()
                if not key.startswith("_")
                and (isinstance(value, property | staticmethod | classmethod) or inspect.isfunction(value))
            )
    return members


def _signature(name: str, thing: Any, method: bool = False) -> str:
    parameters = list(inspect.signature(thing).parameters.values())[1 if method else 0 :]
    words, starred = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            words, starred = [*words, "*"], True
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        has_default = parameter.default is not parameter.empty
        words.append(f"{star}{parameter.name}" + (f"={parameter.default!r}" if has_default else ""))
    return f"{name}({', '.join(words)})"


def _text(docstring: str) -> str:
    """A docstring with sections of Google's style as Markdown."""
    out: list[str] = []
    for line in docstring.replace("``", "`").splitlines():
        section = re.fullmatch(r"(Args|Returns|Raises):", line)
        argument = re.fullmatch(r"    (\*{0,2}[\w.]+(?:, \w+)*): (.*)", line)
        if section:
            out += [f"*{ {'Args': 'Parameters'}.get(section[1], section[1]) }*", ""]
        elif argument:
            out.append(f"- `{argument[1]}`: {argument[2]}")
        else:
            out.append(f"  {line.strip()}" if line.startswith("        ") else line.strip())
    return "\n".join(out).strip()


# --------------------------------------------------------------------------------------------------------------------
# Pages as the site has them: links that leave docs lead to copies of those pages, or are none.


OUTSIDE: Final = "project"
"""Folder of the site with pages from elsewhere in the repository."""
_LINK: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def stage(folder: Path) -> None:
    """Write the pages of the site, and its configuration, into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder / "docs")
    left, done = sorted(DOCS.rglob("*.md")), set[Path]()
    while left:
        source = left.pop()
        done.add(source)
        target = folder / "docs" / _place(source)
        text, beyond = staged(source.read_text(encoding="utf-8"), source)
        left += [path for path in beyond if path not in done and path not in left]
        if "decisions" in source.parts or not source.is_relative_to(DOCS):
            text = f"---\nsearch:\n  exclude: true\n---\n\n{text}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "mkdocs.yml", folder / "mkdocs.yml")


def _place(source: Path) -> Path:
    """Where a page of the repository lies among those of the site."""
    if source.is_relative_to(DOCS):
        return source.relative_to(DOCS)
    return Path(OUTSIDE) / source.relative_to(ROOT)


def staged(text: str, source: Path) -> tuple[str, list[Path]]:
    """A page with links of the site, and the pages outside docs that it links."""
    beyond: list[Path] = []

    def replaced(link: re.Match[str]) -> str:
        label, address = link[1], link[2]
        path, mark, anchor = address.partition("#")
        if not path or re.match(r"[a-z]+:", address):
            return link[0]
        target = (source.parent / unquote(path)).resolve()
        if target.is_relative_to(DOCS) and source.is_relative_to(DOCS):
            return link[0]
        if target.suffix != ".md" and not target.is_relative_to(DOCS):
            return label if "`" in label else f"`{target.relative_to(ROOT)}`" if label == path else label
        if not target.is_relative_to(DOCS):
            beyond.append(target)
        return f"[{label}]({os.path.relpath(_place(target), _place(source).parent)}{mark}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(replaced, part) for part in parts), beyond


# --------------------------------------------------------------------------------------------------------------------
# What pages and the built site have to keep.


def faults_of_pages() -> list[str]:
    """Pages that are not there, tutorials that are too long, and pages that are hard to read."""
    pages = navigation()
    faults = [f"{page.name} is in the navigation and not in docs" for page in pages if not page.path.is_file()]
    if faults:
        return faults
    read = [page for page in pages if not page.is_generated]
    for page in read:
        if page.part == "Tutorials" and page.words > MOST_OF_A_TUTORIAL:
            faults.append(f"{page.name} has {page.words:,} words; expected at most {MOST_OF_A_TUTORIAL:,}")
        if page.part in EASE and page.ease < EASE[page.part]:
            faults.append(f"{page.name} has a reading ease of {page.ease:.0f}; expected {EASE[page.part]:.0f} or more")
    return faults


class _Links(HTMLParser):
    """Links and anchors of a page, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif "src" in values or tag == "link":
            self.loads.append(values.get("src") or values.get("href", ""))


def faults_of_site(site: Path) -> list[str]:
    """Links of the built site that lead nowhere, and files that it would load from elsewhere."""
    pages = {path: _Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    faults = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        faults += [f"{name} loads {load}" for load in page.loads if re.match(r"(?:https?:)?//", load)]
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            address, _, anchor = unquote(link).partition("#")
            target = (path.parent / address).resolve() if address else path
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                faults.append(f"{name} links {link}, which is not there")
    return faults


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _check(site: Path) -> int:
    for page in navigation():
        if page.path.is_file():
            kind = "generated" if page.is_generated else f"ease {page.ease:.0f}"
            _print(f"{page.words:>7,} words  {kind:<10} {page.name}")
    read = [page for page in navigation() if page.path.is_file() and not page.is_generated]
    total = sum(page.words for page in read)
    _print(f"{total:>7,} words that people read; the target is {MOST_WORDS:,}")
    faults = [*faults_of_pages(), *faults_of_site(site.resolve())]
    for fault in faults:
        _print(f"fault: {fault}")
    return 1 if faults else 0


def _run(chosen: list[str]) -> int:
    for page in with_code():
        if chosen and page.path.stem not in chosen:
            continue
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            count = run_page(page.text, Path(folder))
        _print(f"{page.name}: {count} blocks ran in {time.perf_counter() - began:.0f} s")
    return 0


def _write() -> int:
    (DOCS / "reference" / "python.md").write_text(reference(), encoding="utf-8")
    picture = (DOCS / "first-page.svg").read_text(encoding="utf-8")
    (DOCS / "assets" / "marked-page.svg").write_text(marked(picture), encoding="utf-8")
    for name in NOTEBOOKS:
        page = DOCS / "tutorials" / f"{name}.md"
        page.with_suffix(".py").write_text(notebook(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def main(words: list[str]) -> int:
    """Exit status: 1 if a page or the site has a fault."""
    match words:
        case ["write"]:
            return _write()
        case ["stage", folder]:
            stage(Path(folder))
            return 0
        case ["check", site]:
            return _check(Path(site))
        case ["run", *chosen]:
            return _run(chosen)
    sys.stderr.write(f"{__doc__}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
