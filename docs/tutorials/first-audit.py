# %% [markdown]
# # Your first audit
#
# You have a table of loan decisions. You want to know if one group was treated worse than another. This page takes
# you there in about 15 minutes. You need Python 3.11 or later, `make`, and a terminal.
#
# We use a made-up table of 900 applications. It is messy on purpose: it has a title, a total, dollar signs and odd
# spellings. We drew it by a rule that we know: Black applicants with the same income, loan and history are approved less
# often. So you can check if the audit finds what is there.
#
# ## 1. Set up
#
# Get the code and set it up. This takes three to six minutes, once.
#
# ```console
# git clone <the address of this repository> evenhand
# cd evenhand
# make audit
# source .venv/bin/activate
# ```
#
# `make audit` also runs an audit of old mortgage data from Boston. If you see a page with five questions, all is well.
#
# Then go to an empty folder. All that follows happens there.
#
# ```console
# mkdir ~/my-audit
# cd ~/my-audit
# ```
#
# ## 2. Get a table

# %% language="bash"
# python -c "import evenhand as eh; eh.datasets.draw_loans('loans.csv')"
# head -6 loans.csv

# %% [markdown]
# The file looks like an export from an office system:
#
# ```text
# "Loan applications 2024, exported from the branch system"
#
# Application,Received,Race,Income,Loan amount,Credit history,Purpose,Decision,Interest rate
# A00001,11/17/2024,White,"$70,000","$50,500",good,Car,Approved,5.85%
# A00002,08/21/2024,Asian,"$87,900","$92,300",fair,Other,Denied,
# A00003,11/02/2024,Black or African American,"$88,600","$41,500",good,Other,Approved,5.07%
# ```
#
# Do not clean it. Evenhand writes down how it reads each cell, and counts each change.
#
# If you have a table of your own, you can use it in place of `loans.csv`. It needs a row for each application, the
# decision, the group of the applicant, and what the lender knew.
#
# ## 3. Draft the audit

# %% language="bash"
# evenhand init loans.csv -o loans.yaml

# %% [markdown]
# This reads the table and writes a plan of the audit, the **spec**. What Evenhand had to guess becomes a question:
#
# ```text
#   Is Decision the decision, with Approved as favourable?
#   Are the sides of Decision right? Approved 599 favourable; Denied 246 unfavourable; Withdrawn by applicant 55 neither.
#   Protected: Race?
#   Compared with the right groups? Race with White (the usual comparison group; favourable: 420, Black or African American 92).
#   loans.csv: 1 line above the table is no row; loans.csv: the last record is no row.
#   Left out as known only after the decision: Interest rate?
#   Does the table hold every column that was decided by? No is assumed.
#   Would you defend the limits? They are fixed before the run.
# ```
#
# Read them from the top. The first one does most harm if it is wrong. Some points to note:
#
# - `Approved`, `APPROVED ` and `approved` were joined to one value. Only case and blanks differ.
# - People who withdrew got no decision. They are in neither group.
# - The interest rate is known only after the decision. It must not explain the decision, so it is left out.
# - "Does the table hold every column?" We do not know what the lender saw. So the answer stays No, and the audit will be
#   more careful with its words.
#
# To change an answer, open `loans.yaml` in an editor. Each open question ends in `CHECK`. Here the guesses are right, so
# take them all:

# %% language="bash"
# evenhand init --confirm loans.yaml

# %% [markdown]
# ## 4. Look at what will be read

# %% language="bash"
# evenhand intake loans.yaml

# %% [markdown]
# This prints how many rows, decisions and groups there are, and what was changed on the way in. Check two lines:
#
# ```text
# rows 901: applications 900, 1 footer
# Race	Not provided	Not provided	no people	46
# ```
#
# The total at the foot of the file was not taken for a person. "Not provided" is no group of people.
#
# ## 5. Run the audit

# %% language="bash"
# evenhand audit loans.yaml

# %% [markdown]
# It takes about half a minute and ends with the **first page**:
#
# ```text
# Loan decisions, 2024: Black or African American applicants were approved less often than similar
# White applicants; what the data lack could account for it.
#
#   Approval rates      Inconclusive  Yes. Approved per 100: Black or African American 56, White 75; 1
#                                     other group. Black or African American 19 points below White (10
#                                     to 26)
#   Similar applicants  Inconclusive  No. With the same 4 recorded characteristics, Black or African
#                                     American applicants were approved 15 points less often (7 to
#                                     24). 1 other group: see its page
#   Causal model        Not run       No causal model was given
#   Path to approval    Not run       This method was switched off
#   Model's reasons     Not run       This method was switched off
# ```
#
# ## 6. Read it
#
# Take the second line. Of 100 Black applicants, 15 fewer were approved than of 100 White ones with the same income, loan,
# history and purpose. The numbers in brackets say how sure that is: the true gap may be as small as 7 or as large as 24.
# The gap is real in this table. We know that it is, because we put it there.
#
# Then why **Inconclusive**? Because you said that the table may lack columns. The lender may have seen debts that you do
# not see. If those differ between groups, they could explain the gap. The audit does not hide that doubt.
# "Inconclusive" is never a pass.
#
# The command ends with exit code 3, which means the same. A program that runs the audit can act on it: 0 is within all
# limits, 1 is outside a limit, 3 is inconclusive.
#
# The report has a page for each question. Open it in your browser:
#
# ```console
# evenhand report --open
# ```
#
# Or write it as one file that you can mail:

# %% language="bash"
# evenhand report --single audit.html

# %% [markdown]
# ## 7. Ask how much you could have seen
#
# A small table can miss a large gap. `evenhand power loans.yaml` plants gaps in copies of your table and counts how often
# the audit would see them. It takes some minutes. Here it says that a gap of ten points is called "outside the limit" in 2
# of 100 such audits. So a result of "no difference" from this table would be worth little.
#
# ## What you did
#
# You took a raw table to a first page. You met the three things that count:
#
# - the **spec** holds each choice, so that others can check and repeat it;
# - the **interval** in brackets says how sure a number is;
# - the **state** says what may be concluded, and "inconclusive" is no pass.
#
# ## Where to go next
#
# - [Read a report](read-a-report.md) explains each part of the first page.
# - [Back-fill three years](three-years.md) does this for several years.
# - [What an audit cannot tell](../limits.md) should be read before you act on a result.
#
# This page is a notebook, too: open [first-audit.py](first-audit.py) in Jupyter (with Jupytext), VS Code or PyCharm.
