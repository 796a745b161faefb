"""What the stages exchange: terms, tables, settings, artifacts and errors. Imports nothing else of the project."""
