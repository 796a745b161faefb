"""Audits computed in this process, stage after stage, without Prefect: a lake of real runs within seconds."""

from schemas.audit.spec import AuditSpec
from tasks.lake.store import Lake


def computed(lake: Lake, spec: AuditSpec) -> str:
    """Audit and publish; returns the id of the run."""
    from flows.runs.record import publish
    from tasks.plan import plan, walk

    planned = plan(spec)
    done = walk(planned.steps, lambda step, given: step.stage.run(lake, given, step.settings, step.modules))
    publish(lake, planned, done)
    return planned.run
