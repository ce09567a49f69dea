"""Memoranda: memory for AI agents as Markdown notes in Git."""

__version__ = "0.1.0"
