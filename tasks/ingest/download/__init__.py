"""Download of one file over HTTP: requests, checks of answers, resumption and progress."""
