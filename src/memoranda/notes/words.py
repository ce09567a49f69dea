"""The closed sets of words that fields of a note may hold, and how large a note may be."""

KINDS = ("episodic", "semantic", "procedural", "preference", "fact")
SCOPES = ("session", "user", "agent", "shared_agents", "project", "team", "organization", "global")
ORIGINS = ("agent", "human", "external", "maintenance", "import")
CLASSIFICATIONS = ("public", "internal", "confidential", "restricted")
RETENTION_CLASSES = ("keep_history", "erase_history")
SIZE_LIMIT = 1_048_576  # bytes of a note that may be written
