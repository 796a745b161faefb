"""Audit spec of a deployed flow: its values, or the path of a file that is read when the run begins.

With a path, an operator can change the spec without a new deployment. The run's manifest records the spec that ran.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schemas.audit.spec import AuditSpec
from schemas.audit.text import spec_text
from schemas.errors import SpecError
from tasks.metrics.limits import faults
from tasks.pipeline.specs import checked, read_spec


def given_spec(spec: Mapping[str, Any] | str) -> AuditSpec:
    """The spec.

    Raises:
        SpecError: there is no such file, or it is not usable.
    """
    if not isinstance(spec, str):
        return checked(spec, "the parameter `spec`", (faults,))
    try:
        text = spec_text(Path(spec))
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"no audit spec can be read at {spec!r} ({error}); put one there, or run the deployment with another `spec`"
        ) from error
    return read_spec(text, spec, also=(faults,)).spec
