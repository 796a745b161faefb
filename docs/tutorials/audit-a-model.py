# %% [markdown]
# # Audit a model in Python
#
# You have a model that says who gets a loan. Its creator says that it never sees race, so it must be fair. Is that so? And
# was the lender fair whose decisions it learnt from? This page asks both questions in Python, in about ten minutes.
#
# We use drawn data, so that the truth is known. No person is in them. You need the package
# (`pip install evenhand`, or a clone after `make audit`).
#
# ## 1. Get the data

# %%
import evenhand as eh

twin = eh.datasets.load_twin(rows=2000, planted="direct", seed=1)
X, y, race = twin.X, twin.y, twin.race
print(y.groupby(race).mean().round(3))

# %% [markdown]
# `X` has six columns that the lender saw. `y` is 1 where the loan was approved. `race` is the group. The lender of this
# world approves 60 of 100 Black applicants and 77 of 100 White ones.
#
# No real table has the next thing: the truth. For each row, the twin knows what the decision would be in the other group.

# %%
print(twin.flip_shares.round(3))

# %% [markdown]
# For 15 of 100 Black applicants the lender would decide otherwise if they were White.
#
# ## 2. Train a model
#
# Any model works that has `predict` or `predict_proba` on your frame. This one does not see race.

# %%
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

numbers = ["income_usd", "property_value_usd", "loan_amount_usd", "ltv_ratio"]
columns = make_column_transformer(
    (StandardScaler(), numbers),
    (OneHotEncoder(handle_unknown="ignore"), ["debt_to_income_ratio", "loan_purpose"]),
)
model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(X, y)
decisions = model.predict(X)

# %% [markdown]
# ## 3. Ask about the lender
#
# Were similar applicants treated alike? Each class of Evenhand has `fit`, as in scikit-learn. The groups go in as
# `sensitive_features`, as in fairlearn.

# %%
quick = {"splits": 1, "terms": "none"}
lender = eh.AdjustedDisparity(reference="White", settings=quick)
lender.fit(X, y, sensitive_features=race)
gap = lender.by_group.loc["Black"]
print(lender.by_group[["estimate", "low", "high", "n", "state"]])
assert gap["low"] > 0.1

# %% [markdown]
# The estimate is about 0.16. Among applicants with the same six columns, 16 more of 100 Black applicants were denied. The
# truth was 15 of 100. `low` and `high` hold the interval: the true gap is between them in 95 of 100 such samples. `state`
# is `outside`: the whole interval is beyond the limit.
#
# The settings in `quick` save time. Leave them out for a result that you want to publish.
#
# ## 4. Ask about the model
#
# Now ask the same of the decisions of the model:

# %%
of_model = eh.AdjustedDisparity(reference="White", settings=quick)
of_model.fit(X, decisions, sensitive_features=race)
print(of_model.by_group[["estimate", "low", "high", "n", "state"]])
assert abs(of_model.by_group.loc["Black", "estimate"]) < 0.05

# %% [markdown]
# The gap is near 0. The model cannot look at race, and no column of this world stands in for it. So it treats like cases
# alike, although it learnt from a lender who did not. Note the state: it is `inconclusive`, not `within`. The limit is
# 2 points, and 2,000 rows are too few to rule such a gap out.
#
# Does that make the model fair? Not yet. This world has equal incomes in both groups. Draw one in which the groups have
# other means, and the rule looks at nothing else:

# %%
other = eh.datasets.load_twin(rows=2000, planted="mediated", seed=1)
learnt = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(other.X, other.y)
shares = learnt.predict_proba(other.X)[:, 1]
print({group: round(float(shares[other.race == group].mean()), 2) for group in ("Black", "White")})
print(other.flip_shares.round(3))

# %% [markdown]
# The model gives Black applicants lower chances here, and it still does not see race. Their lower means carry the
# difference. Whether such a path is fair is a choice that people make. It is no fact that data can show.
# [Which method answers which question](../explanation/which-method.md) helps you to choose.
#
# ## 5. Ask what the model looks at
#
# Does it use the same reasons for both groups? `ExplanationConsistency` pairs comparable applicants of two groups and
# compares why the model decided as it did: 0 is the same reasons, 1 is opposite ones.

# %%
reasons = eh.ExplanationConsistency(
    model, comparable_by=["income_usd", "loan_amount_usd"], reference="White", settings={"relabelled_draws": 0}
)
reasons.fit(X[:400], sensitive_features=race[:400])
print(reasons.by_group[["estimate", "low", "high", "n"]])

# %% [markdown]
# The figure by itself says little, as two people of one group have different reasons, too. In a full run it is held
# against pairs within one group.
#
# ## 6. See who was left out
#
# Every class tells you which rows no figure is about, and why:

# %%
print(len(lender.refused_), "rows were left out")

# %% [markdown]
# Nothing is dropped in silence. Here every row is complete.
#
# ## What you did
#
# You asked two questions that are often mixed up. Was the lender fair? Is the model? You found that a model can be more
# even than the people it learnt from, and that "it does not see race" settles nothing.
#
# - [Evenhand in Python](../python.md) shows all classes.
# - [Python reference](../reference/python.md) lists every parameter.
# - [For researchers](../how-to/researchers.md) has short recipes.
#
# This page is a notebook, too: open [audit-a-model.py](audit-a-model.py) in Jupyter (with Jupytext), VS Code or PyCharm.
