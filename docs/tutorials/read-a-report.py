# %% [markdown]
# # Read a report
#
# A report opens with one page. This tutorial takes you through each part of it, so that you know what you may say and
# what you may not. It takes about ten minutes and needs no terminal, but you can run the code to see the same page.
#
# The example is an audit of 1,989 real home loan decisions in Boston in 1990. The data are old and well known.
#
# ![First page of the report on Boston, with numbered marks](../assets/marked-page.svg)
#
# ## 1. The headline
#
# The first sentence is the finding. Read the verb. "Were approved less often than white applicants **with the same
# recorded characteristics**" is a claim about people who look alike in the table. It is no claim about why.
#
# ## 2. The questions
#
# Each row is one question. They are not the same question, and they can have different answers:
#
# - **Approval rates**: was one group approved less often? This compares all people, with all their differences.
# - **Similar applicants**: were people with the same records treated alike?
# - **Causal model**: would the decision change if the applicant were of another group? This rests on a drawing of causes
#   that someone made.
# - **Path to approval**: does one group have a longer way to a yes?
# - **Model's reasons**: does the model look at other things for one group?
#
# ## 3. The state
#
# Each question has a limit that was fixed before the run. The state says how the result stands to it:
#
# - **Outside the limit**: the whole interval is beyond it. This is a finding.
# - **Within the limit**: the whole interval is inside it.
# - **Inconclusive**: the data show neither, for [one of six reasons](../verdicts.md#why-a-result-is-inconclusive). It is
#   **no pass**.
# - **No limit set** and **Not run**: nothing was judged.
#
# Look at the approval rates of Boston. The gap is 23 points, which is large. The state is still "Inconclusive". The
# state gives the reason: the ratio of the two rates may lie on either side of the limit of 0.80.
#
# ## 4. The picture
#
# A dot is the best guess. The line through it is the interval: if the same study were done a hundred times, about 95 of
# the lines would hold the true value. A short line means many people. A long line means few. Look at the line first and at
# the dot second.
#
# ## 5. What it cannot show
#
# The last lines name what the audit cannot tell. Three things hold for all audits: not why, not if it was lawful, and
# nothing about one person. Quote them when you quote a number.
#
# ## Read the same page as data
#
# If you like to see numbers as tables, run this. It audits the same data with one method, to save time.

# %%
import evenhand as eh

X, y, race = eh.datasets.load_boston(return_X_y_A=True)
result = eh.audit(
    X.assign(race=race, approve=y),
    decision="approve",
    favourable=1,
    protected="race",
    reference="white",
    methods={"adjusted": {"splits": 1}},
    settings={"model": {"kind": "none"}},
)
page = result.first_page()
print(page.headline)

# %% [markdown]
# Here are the questions with their states:

# %%
print(page.questions[["question", "state"]])

# %% [markdown]
# And here is one question, a group in each row:

# %%
similar = result.by_group("similar_applicants")
print(similar[["estimate", "low", "high", "n", "state"]])
assert similar.loc["black", "high"] < 0

# %% [markdown]
# The estimate is a difference of chances. Below 0 means that the group is approved less often. `low` and `high` are the
# ends of the line in the picture. `n` is how many people the figure is about. The column `reason` has the words behind the
# state:

# %%
print(similar["reason"].to_dict())

# %% [markdown]
# ## Three traps
#
# - **"Inconclusive, so nothing was found."** No. It means that this table cannot tell. Ask for more rows or more columns.
# - **"Within the limit, so the lender is fair."** No. It means that this measure, with these columns, is inside a limit
#   that someone chose.
# - **"The gap is 13 points because of race."** The audit does not show why. It shows that the recorded columns do not
#   explain the gap.
#
# ## Where to go next
#
# - [What an audit cannot tell](../limits.md), in full.
# - [Rules and error rates](../verdicts.md): how a state comes about, and how often it is wrong.
# - [For journalists](../how-to/journalists.md): what may be written.
# - [Glossary](../glossary.md): each word of the report.
#
# This page is a notebook, too: open [read-a-report.py](read-a-report.py) in Jupyter (with Jupytext), VS Code or PyCharm.
