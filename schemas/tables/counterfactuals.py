"""Tables of counterfactuals and of the feasibility graph."""

from schemas.table import Column, Table
from schemas.tables.applications import DECISION_MAKER, GROUP, PROTECTED_ATTRIBUTE, ROW_ID
from schemas.terms import Refusal

# --------------------------------------------------------------------------------------------------------------------
# Tables of the feasibility graph (FGCE, section III).


FEASIBILITY_NODES = Table(
    "feasibility_nodes",
    "The node of every application in the graph: equal rows of equal groups share one. A large audit has several "
    "graphs, each of a draw of its rows, whose nodes follow one another.",
    (
        ROW_ID,
        Column("node", "int32", "number of the node, from 0", minimum=0),
        Column("draw", "int32", "number of the draw of rows, from 0; 0 where the graph is of all rows", minimum=0),
    ),
    key=("row_id", "draw"),
    restricted=True,
)

FEASIBILITY_EDGES = Table(
    "feasibility_edges",
    "Directed edges: an application like the source could in one step come to look like the destination.",
    (
        Column("source", "int32", "node", minimum=0),
        Column("destination", "int32", "node", minimum=0),
        Column("distance", "double", "L2 distance in encoded units", minimum=0.0),
    ),
    key=("source", "destination"),
    restricted=True,
)

FEASIBILITY_FACTS = Table(
    "feasibility_facts",
    "What was decided while the graph was built, and what came of it.",
    (
        Column("fact", "string", "epsilon, nodes, edges, isolated, without_neighbour or capped"),
        Column("value", "double", "its value"),
        Column("words", "string", "the same in words"),
    ),
    key=("fact",),
    restricted=True,
)


# --------------------------------------------------------------------------------------------------------------------
# Tables of counterfactuals: generated applicants, decisions on them, and checks of what was assumed.


GENERATOR = Column("generator", "string", "what made the counterfactual", codes=("scm", "nearest"))

GRAPHS = ("edges", "saturated")
"""Forms of the causal graph."""

COUNTERFACTUALS = Table(
    "counterfactuals",
    "Every applicant outside the reference group as a member of it: its features then, with the noise that was kept or "
    "the real applicant whose they are.",
    (
        *(ROW_ID, GENERATOR, PROTECTED_ATTRIBUTE, GROUP),
        Column("refusal", "string", "why there is no counterfactual", nullable=True, codes=tuple(Refusal)),
        Column("other_row_id", "string", "the real applicant that it is; null where it is imagined", nullable=True),
        Column("distance", "double", "how far that one is, in standard deviations", nullable=True, minimum=0),
    ),
    key=("row_id", "generator", "protected_attribute"),
    open=True,
    restricted=True,
)

COUNTERFACTUAL_DECISIONS = Table(
    "counterfactual_decisions",
    "What the model would have decided on each counterfactual. The lender cannot be asked.",
    (
        *(ROW_ID, GENERATOR, PROTECTED_ATTRIBUTE, DECISION_MAKER),
        Column("favourable", "bool", "whether the decision is the favourable one"),
        Column("score", "double", "score of the model, or sum of the rule, that the decision was made from"),
    ),
    key=("row_id", "generator", "protected_attribute", "decision_maker"),
    restricted=True,
)

CAUSAL_CHECKS = Table(
    "causal_checks",
    "How well the causal graph and its mechanisms fit the data. None of it shows that the graph is right.",
    (
        Column(
            "check",
            "string",
            "what was looked at",
            codes=("held_out_fit", "noise_location", "noise_spread", "independence"),
        ),
        Column("node", "string", "the column"),
        Column("other", "string", "the other column", nullable=True),
        Column("given", "string", "JSON list of the columns that are held fixed"),
        Column(
            "statistic",
            "double",
            "R2 or log loss saved; H of Kruskal-Wallis; chi-square of Fligner-Killeen; largest z",
            nullable=True,
        ),
        Column("p", "double", "p-value", True, 0.0, 1.0),
        Column("q", "double", "p after Benjamini-Hochberg over the checks of the same kind", True, 0.0, 1.0),
        Column("n", "int64", "rows behind it", minimum=0),
        Column("words", "string", "the same in words"),
    ),
    restricted=True,
)

GRAPH_TESTS = Table(
    "graph_tests",
    "Whether the data contradict the causal graph as a whole: its rejected independences, and those of graphs with the "
    "same edges among permuted columns (Eulig and others 2023). No row where no graph is given.",
    (
        Column("graph", "string", "edges of the spec, or saturated: every edge that an order allows", codes=GRAPHS),
        Column("tests", "int64", "independences that the graph implies, each of them tested", minimum=0),
        Column("rejected", "int64", "of these, rejected at 5 % after Holm", minimum=0),
        Column("dependent", "int64", "of these, rejected at 5 % each", minimum=0),
        Column("permutations", "int64", "graphs with permuted columns; 0 where nothing is rejected", minimum=0),
        Column("as_good", "int64", "of these, with no more independences rejected at 5 % each", minimum=0),
        Column("equivalent", "int64", "of these, which imply nothing that the graph does not imply", minimum=0),
        Column(
            "contradicted",
            "bool",
            "whether more than 10 % of the independences are rejected; or any is, and more than 5 % of the permuted "
            "graphs are as good",
        ),
        Column("words", "string", "the same in words"),
    ),
    key=("graph",),
    restricted=True,
)

CAUSAL_EFFECTS = Table(
    "causal_effects",
    "Features of a group as they are and as they would have been, as quantiles.",
    (
        *(PROTECTED_ATTRIBUTE, GROUP),
        Column("feature", "string", "name of the feature"),
        Column("category", "string", "the category, of a feature that has categories", nullable=True),
        Column("quantile", "double", "the quantile; null for a category", nullable=True, minimum=0.0, maximum=1.0),
        Column("factual", "double", "its value, or the share of the category", nullable=True),
        Column("imagined", "double", "the same had everyone belonged to the reference group", nullable=True),
        Column("n", "int64", "applicants behind it", minimum=0),
        Column("clipped", "int64", "imagined values cut off at their bounds", minimum=0),
    ),
    restricted=True,
)

TO_GROUP = Column("to_group", "string", "the group as whose member the applicant is imagined")
MEDIATED_BY = Column("generator", "string", "what imagined the mediators", codes=("gan", "quantile"))
NETWORK = Column("network", "int32", "number of the network, from 0", nullable=True, minimum=0)

MEDIATED = Table(
    "mediated",
    "Mediators of applicants as members of the reference group; of its own members, as members of every other group. "
    "One network's answer, the one nearest to the answers of all.",
    (
        *(ROW_ID, MEDIATED_BY, PROTECTED_ATTRIBUTE, GROUP, TO_GROUP, NETWORK),
        Column(
            "spread",
            "double",
            "how far the networks part: standard deviations of a mediator, or the share that names another category; "
            "null for one network, which shows nothing",
            nullable=True,
            minimum=0,
        ),
        Column("refusal", "string", "why nothing was imagined", nullable=True, codes=tuple(Refusal)),
    ),
    key=("row_id", "protected_attribute", "to_group"),
    open=True,
    restricted=True,
)

MEDIATED_DECISIONS = Table(
    "mediated_decisions",
    "What the model would have decided on the mediators of each network. The lender cannot be asked.",
    (
        *(ROW_ID, PROTECTED_ATTRIBUTE, TO_GROUP, DECISION_MAKER),
        Column("score_changes", "doubles", "score then less score now, network by network"),
        Column("flips", "doubles", "1 where the decision is another one, else 0, network by network"),
    ),
    key=("row_id", "protected_attribute", "to_group", "decision_maker"),
    restricted=True,
)

MEDIATOR_EFFECTS = Table(
    "mediator_effects",
    "Mediators of a group as they are, as they would have been in another group, and as they are in that group.",
    (
        *(PROTECTED_ATTRIBUTE, GROUP, TO_GROUP),
        Column("feature", "string", "name of the mediator"),
        Column("category", "string", "the category, of a mediator that has categories", nullable=True),
        Column("quantile", "double", "the quantile; null for a category", nullable=True, minimum=0.0, maximum=1.0),
        Column("factual", "double", "its value, or the share of the category"),
        Column("imagined", "double", "the same of what all networks imagine, taken together"),
        Column("there", "double", "the same of the other group's own members"),
        Column("n", "int64", "applicants who were imagined", minimum=0),
        Column("n_there", "int64", "members of the other group", minimum=0),
    ),
    restricted=True,
)

GENERATOR_CHECKS = Table(
    "generator_checks",
    "What can be seen of the generators without knowing the truth. None of it shows that a person was identified.",
    (
        *(PROTECTED_ATTRIBUTE, MEDIATED_BY, NETWORK),
        Column(
            "check",
            "string",
            "what was looked at",
            codes=(
                *("reconstruction", "advantage", "accuracy", "converged"),
                *("kept", "beyond_mean", "apart_from_quantiles", "leak", "support"),
            ),
        ),
        Column(
            "column",
            "string",
            "the mediator, the covariate of a leak or the group of a support; null for all mediators",
            nullable=True,
        ),
        Column("value", "double", "what was found; null where it is not defined", nullable=True),
        Column("n", "int64", "rows behind it", minimum=0),
        Column("doubtful", "bool", "whether it is a reason to doubt the generators"),
    ),
    restricted=True,
)

GENERATOR_HISTORY = Table(
    "generator_history",
    "How the training of adversarial generators went, epoch by epoch.",
    (
        PROTECTED_ATTRIBUTE,
        Column("network", "int32", "number of the network, from 0", minimum=0),
        Column("epoch", "int32", "number of the epoch, from 1", minimum=1),
        Column("reconstruction", "double", "squared error of the observed mediators, all inputs together", minimum=0),
        Column("log_loss", "double", "log loss of the discriminator, in nats", minimum=0),
        Column("accuracy", "double", "share of rows whose own mediators the discriminator picks out", False, 0.0, 1.0),
    ),
    key=("protected_attribute", "network", "epoch"),
)

GENERATORS = Table(
    "generators",
    "Trained adversarial generators, so that they can imagine again without being trained. Restricted.",
    (
        PROTECTED_ATTRIBUTE,
        Column("categories", "string", "JSON list of the groups that they know, in order"),
        Column("covariates", "string", "JSON list of the covariates"),
        Column("mediators", "string", "JSON list of the mediators"),
        Column("content", "binary", "state after the last epoch as safetensors; scales follow from the training rows"),
    ),
    key=("protected_attribute",),
    restricted=True,
)

GENERATOR_REFITS = Table(
    "generator_refits",
    "Net share of changed decisions of each group on resampled rows, by one generator trained on each resample.",
    (
        *(PROTECTED_ATTRIBUTE, GROUP),
        Column("refit", "int32", "number of the resample, from 0", minimum=0),
        Column(
            "share_changed",
            "double",
            "share of members whose decision would turn favourable less the share whose would turn unfavourable; null "
            "where the training failed",
            nullable=True,
            minimum=-1.0,
            maximum=1.0,
        ),
    ),
    key=("protected_attribute", "group", "refit"),
    restricted=True,
)
