"""Homes whose objects and refs are rows of PostgreSQL: any number of nodes share one without a shared disk."""
