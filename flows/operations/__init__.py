"""Tools of operators: check of the environment, status of years, retention.

Commands that print them are in ``flows.cli``; processes are supervised in ``flows.supervision``.
"""
