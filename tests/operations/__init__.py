"""Tests of what can be done with a memory, as far as it touches storage."""
