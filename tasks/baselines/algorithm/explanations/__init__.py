"""Group explanations: changes proposed to many applicants at once, by the systems of other papers."""
