"""Stage generate: counterfactuals of applicants outside the reference group, by a causal model or by matching.

It also writes the checks of the assumptions: the held-out fit of each mechanism, the dependence of its noise, the
independences of the causal graph that the data contradict, whether they contradict the graph as a whole, and the
features of each group before and after.
"""

import pyarrow as pa

from schemas.audit.causal import CausalGraph
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.tables.applications import APPLICANTS, DECISIONS, ENCODINGS, MEMBERSHIPS, MODELS
from schemas.tables.counterfactuals import (
    CAUSAL_CHECKS,
    CAUSAL_EFFECTS,
    COUNTERFACTUAL_DECISIONS,
    COUNTERFACTUALS,
    GRAPH_TESTS,
)
from tasks.counterfactuals.settings import MatchingSettings
from tasks.counterfactuals.stage_settings import GenerateSettings
from tasks.pipeline.stage import Produced, stage


def generate_settings(
    spec: AuditSpec, generator: str, matching: MatchingSettings, *, of_sample: bool = False
) -> GenerateSettings:
    """The stage's settings for one generator.

    Args:
        spec: of the audit.
        generator: ``scm`` or ``nearest``.
        matching: of ``nearest``.
        of_sample: whether all that read the counterfactuals ask a sample of a large file.

    Raises:
        SpecError: no edge of the causal graph leads out of a protected attribute, so that there is nothing to imagine.
    """
    if generator == "nearest":
        changes = {"causal_graph": CausalGraph(), "matching": matching, "queries": None}
        return GenerateSettings.of(spec, generator=generator, **changes)
    attributes = {name for p in spec.protected for name in (p.name, *p.columns)}
    if not attributes & {cause for cause, _ in spec.causal_graph.edges}:
        message = f"no edge leads out of a protected attribute; add one from {', '.join(sorted(attributes))}"
        raise SpecError(message, ("causal_graph", "edges"))
    queries = spec.sampling.queries if of_sample and spec.sampling else None
    return GenerateSettings.of(spec, generator=generator, matching=MatchingSettings(), queries=queries)


@stage(
    reads=(APPLICANTS, ENCODINGS, MEMBERSHIPS, DECISIONS, MODELS),
    writes=(COUNTERFACTUALS, COUNTERFACTUAL_DECISIONS, CAUSAL_CHECKS, GRAPH_TESTS, CAUSAL_EFFECTS),
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
    """One counterfactual, or a refusal with its reason, for every applicant and protected attribute with an effect.

    Of a large file those who are asked are imagined, where all methods that read counterfactuals ask a sample.
    """
    from tasks.counterfactuals.rows import generated  # loads what fits mechanisms

    return generated(applicants, encodings, memberships, decisions, models, settings)
