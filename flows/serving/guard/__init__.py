"""Who is let in, and with what: token and cookie, Host and Origin, headers of answers, bounds of load and forms."""
