"""What the stages exchange and what users write: terms, tables, the audit spec, artifacts and errors.

It imports nothing else of the project. What is computed from these: ``tasks``.
"""
