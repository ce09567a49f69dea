"""The operations of the governed service: each is one path through `SERVICE_GUARDS` to an engine and into the audit."""
