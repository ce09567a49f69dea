"""Where notes live: the intake log, the working tree, commits, the ledger, and edits made elsewhere."""
