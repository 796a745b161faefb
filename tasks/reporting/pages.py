"""Pages: a template with what it shows, as one file that asks the network for nothing.

No page needs a script, and a policy inside the page allows no script but its own.
"""

import base64
import hashlib
from pathlib import Path

import jinja2
from markupsafe import Markup

from schemas.tables.verdicts import STATES
from tasks.reporting.charts.vega import bundle, with_unique_ids

_TEMPLATES = Path(__file__).parent / "templates"


def page(template: str, *, figures: bool, **content: object) -> bytes:
    """A page, with its scripts and styles inside and a policy that lets no other script run.

    Args:
        template: name of the file under ``templates``.
        figures: whether the page has figures, which scripts make interactive.
        content: what the template shows; all text of it is escaped.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # `bundle` and the files beside the templates are ours; every text that comes from data goes through autoescape
    environment.filters["unique_ids"] = lambda svg, prefix: Markup(with_unique_ids(svg, prefix))  # noqa: S704
    scripts = [bundle(), _beside("figures.js")] if figures else []
    return (
        environment.get_template(template)
        .render(
            **content,
            style=Markup(_beside("style.css")),  # noqa: S704
            scripts=[Markup(script) for script in scripts],  # noqa: S704
            hashes=[_hash(script) for script in scripts],
            words=STATES,
        )
        .encode()
    )


def _beside(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """What the page's policy knows a script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
