"""Who may do what: identity, registry, policies, relations, decisions, credentials, audit. Each fails closed."""
