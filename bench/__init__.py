"""Measurements of Memoranda beside their yardsticks; see README.md."""
