"""Rules of the lines: what would change the findings, what to do next, what the page cannot tell."""
