"""Approval and denial rates, made without any method: ``report.yaml`` says what the report tells of them."""
