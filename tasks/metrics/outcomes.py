"""Measures without a method: approval and denial rates of the lender and, if there is one, of the model."""

from collections.abc import Iterator

from schemas.audit.spec import AuditSpec
from tasks.pipeline.planned import COMPARED, Form, share


def makers_of(spec: AuditSpec) -> tuple[str, ...]:
    """Who decides: the lender, and the model if there is one."""
    return ("lender",) if spec.audited_model.kind == "none" else ("lender", "model")


def measures(spec: AuditSpec) -> Iterator[Form]:
    """The planned measures."""
    makers = makers_of(spec)
    yield share("approval_rate", beside=COMPARED, makers=makers)
    yield share("denial_rate", beside=COMPARED, makers=makers)
