"""Several pages of a report as one file, for e-mail and for PDF: unique ids, links among them, none to other files."""

import posixpath
import re
from collections.abc import Iterable, Mapping

FIRST = "report.html"
QUESTIONS = "pages/"
NOT_JOINED = ("pages/quality.html",)
"""It answers no question of the first page."""
_TAG = re.compile(r"<[a-zA-Z][^<>]*>")
_REFERENCE = re.compile(r'\s(id|for|headers|href|aria-labelledby|aria-describedby|aria-controls)="([^"]*)"')
_STYLE = """<style>
.page { padding-top: 1rem; }
.page + .page { margin-top: 2rem; }
.page a:not([href]) { display: none; }
@media print {
  .page { padding: 0; }
  .page.long { font-size: 9pt; margin-top: 9mm; }
  .page.decide + .page { break-before: page; margin-top: 0; }
  .long .drawing svg { max-width: 125mm; }
}
</style>"""
"""On paper the pages of questions follow each other, so that 12 sheets hold all of them."""


def single(files: Mapping[str, bytes]) -> bytes:
    """The first page and the pages of questions in one file.

    Args:
        files: path -> content, as ``files.files`` gives them; others than pages of questions are left out.
    """
    asked = (path for path in files if path.startswith(QUESTIONS) and path not in NOT_JOINED)
    return joined({path: files[path].decode() for path in (FIRST, *asked)}).encode()


def joined(pages: Mapping[str, str]) -> str:
    """Pages in one, the head and the footer being those of the first.

    An id of ``pages/gap.html`` is given the prefix ``gap-``, and its page the id ``gap``. A link to a file that is not
    in here is not shown.
    """
    first = next(iter(pages.values()))
    body = "\n".join(_page(path, text, pages) for path, text in pages.items())
    head = _inner(first, "head")
    footer = _own(FIRST, _inner(first, "footer"), pages)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{head}{_STYLE}\n</head>\n<body class="single">\n'
        f'<main id="main" tabindex="-1">\n{body}\n</main>\n<footer>{footer}</footer>\n</body>\n</html>\n'
    )


def name_of(path: str) -> str:
    """The id of a page."""
    return posixpath.splitext(posixpath.basename(path))[0]


def _page(path: str, text: str, pages: Iterable[str]) -> str:
    found = re.search(r'<body[^<>]*class="([^"]*)"', text)
    content = _own(path, _inner(text, "header") + _inner(text, "main"), pages)
    return f'<div class="page {found[1] if found else ""}" id="{name_of(path)}">\n{content}\n</div>'


def _inner(text: str, tag: str) -> str:
    """What is in the first element of a name that no element of that name is in."""
    found = re.search(rf"<{tag}(?:\s[^<>]*)?>(.*?)</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


def _own(path: str, text: str, pages: Iterable[str]) -> str:
    """The content of a page with its ids made its own. Text holds no tags: templates escape it."""
    known = frozenset(pages)

    def attribute(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name == "href":
            target = _target(path, value, known)
            return f' href="{target}"' if target else ""
        return f' {name}="{" ".join(f"{name_of(path)}-{each}" for each in value.split())}"'

    return _TAG.sub(lambda tag: _REFERENCE.sub(attribute, tag[0]), text)


def _target(path: str, link: str, known: frozenset[str]) -> str:
    """Where a link of a page leads in the joined file; nothing where its target is not in there."""
    file, _, anchor = link.partition("#")
    other = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
    if other not in known:
        return ""
    return f"#{name_of(other)}-{anchor}" if anchor else f"#{name_of(other)}"
