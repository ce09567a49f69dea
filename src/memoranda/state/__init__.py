"""The tables of the service: on SQLite, or on PostgreSQL under row-level security, by the same statements."""
