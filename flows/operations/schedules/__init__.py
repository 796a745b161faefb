"""Schedules of deployments on a Prefect server: what is planned, switching it off and on, late runs that go.

Whether a server makes runs at all: ``scheduler_check``.
"""
