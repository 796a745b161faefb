"""Approvals and denials: made without any method, of the lender and of the model if there is one."""

from collections.abc import Iterator

from schemas.settings import AuditSpec
from tasks.planned.form import COMPARED, Form, share


def measures(spec: AuditSpec) -> Iterator[Form]:
    """The planned measures."""
    makers = ("lender",) if spec.model.kind == "none" else ("lender", "model")
    yield share("approval_rate", beside=COMPARED, makers=makers)
    yield share("denial_rate", beside=COMPARED, makers=makers)
