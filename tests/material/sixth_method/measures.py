"""What NEARBY will measure."""

from collections.abc import Iterator

from schemas.audit.spec import AuditSpec
from tasks.pipeline.method import COMPARED, Form, share


def measures(spec: AuditSpec) -> Iterator[Form]:
    """The one planned measure."""
    yield share("nearby_share", beside=COMPARED)
