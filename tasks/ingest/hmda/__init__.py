"""Files of the Home Mortgage Disclosure Act, of any year and layout, as one table of applications."""

from tasks.ingest.hmda.reading import digest, header, lacking, read

__all__ = ["digest", "header", "lacking", "read"]
