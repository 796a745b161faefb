"""Tools of operators: check of the environment, status of years, retention, dictionary of the tables.

Commands that print them are in ``flows.cli``; processes are supervised in ``flows.supervision``.
"""
