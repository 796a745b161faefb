"""Stage generate: every applicant outside the reference group as a member of it, by a causal model or by matching.

The structural causal model imagines; the nearest real applicant with the same outcome is a match (``generator``).
What was assumed is written down beside it: how well each mechanism fits rows that it has not seen, what is left in its
noise, which independences of the causal graph the data contradict, and what the features of a group become.
"""

import pyarrow as pa

from schemas.audit.causal import CausalGraph
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.tables.applications import APPLICANTS, DECISIONS, ENCODINGS, MEMBERSHIPS, MODELS
from schemas.tables.counterfactuals import CAUSAL_CHECKS, CAUSAL_EFFECTS, COUNTERFACTUAL_DECISIONS, COUNTERFACTUALS
from tasks.counterfactuals.settings import MatchingSettings
from tasks.counterfactuals.stage_settings import GenerateSettings
from tasks.pipeline.stage import Produced, stage


def settings_of(spec: AuditSpec, generator: str, matching: MatchingSettings) -> GenerateSettings:
    """The stage's settings for one generator.

    Raises:
        SpecError: no edge of the causal graph leads out of a protected attribute, so that there is nothing to imagine.
    """
    if generator == "nearest":
        return GenerateSettings.of(spec, generator=generator, causal_graph=CausalGraph(), matching=matching)
    attributes = {name for p in spec.protected for name in (p.name, *p.columns)}
    if not attributes & {cause for cause, _ in spec.causal_graph.edges}:
        message = f"no edge leads out of a protected attribute; add one from {', '.join(sorted(attributes))}"
        raise SpecError(message, ("causal_graph", "edges"))
    return GenerateSettings.of(spec, generator=generator, matching=MatchingSettings())


@stage(
    reads=(APPLICANTS, ENCODINGS, MEMBERSHIPS, DECISIONS, MODELS),
    writes=(COUNTERFACTUALS, COUNTERFACTUAL_DECISIONS, CAUSAL_CHECKS, CAUSAL_EFFECTS),
)
def generate(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    models: pa.Table,
    *,
    settings: GenerateSettings,
) -> Produced:
    """One counterfactual, or a refusal with its reason, for every applicant and protected attribute with an effect."""
    from tasks.counterfactuals.rows import generated  # loads what fits mechanisms

    return generated(applicants, encodings, memberships, decisions, models, settings)
