"""Fair rankings: in which order applicants with a cost are listed, by the systems of other papers."""
