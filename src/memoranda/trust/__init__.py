"""What may be believed, kept and shown: labels and taint, secrets, personal data, injections, the envelope."""
