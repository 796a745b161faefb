"""Commands over years: plan, back-fill, status, trend, restatement."""
