"""Drafts an audit spec from a table that nobody prepared: what is known is filled in, what is a guess is marked CHECK.

Nothing that turns a result around is taken silently: the column of the decision is asked for, or given as an option.
"""
