"""Questions of those who operate: doctor, status, retention.

Commands that print them are in ``flows.cli``; processes are supervised in ``flows.supervision``.
"""
