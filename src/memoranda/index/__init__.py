"""Derivatives of the notes: each can be deleted at any moment and nothing is lost."""
