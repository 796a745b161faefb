"""Systems that the papers compare themselves with: one folder a kind, each with its protocol and its registry."""
