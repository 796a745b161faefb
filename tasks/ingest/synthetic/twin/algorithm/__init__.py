"""Generator of a twin of public HMDA data: drawn applicants with known counterfactuals.

``settings`` has every parameter and ``counts`` the published sizes of the years. ``people`` draws who applies and for
what, ``causal`` how group and noise make income, home, loan, debts and the decision, ``unreported`` which cells are
empty or exempt, ``publishing`` how amounts are rounded before the public sees them. ``drawing`` puts them together, and
``truth`` asks the same people again as members of another group.

Scope: what is drawn. How a layout writes it down: ``tasks.ingest.synthetic.twin``.
"""
