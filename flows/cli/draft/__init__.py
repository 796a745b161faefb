"""Drafts an audit spec from an unprepared table: known values are filled in, guesses are marked CHECK.

Nothing that turns a result around is taken silently: the column of the decision is asked for, or given as an option.
"""
