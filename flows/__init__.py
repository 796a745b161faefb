"""The order of the stages, and the command line. No arithmetic lives here."""
