"""Where applications come from: each source gives its columns as text, with the number of every row."""
