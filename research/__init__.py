"""What reproduces the papers and measures the product; nothing else imports it. The command line finds it by name."""
