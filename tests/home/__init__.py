"""Tests of the floor that keeps bytes: objects, intake log, commits, the person's Git, outside edits."""
