"""Run by Alembic, inside the transaction that `state.database` has opened."""

from __future__ import annotations

from alembic import context

from memoranda.state.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
