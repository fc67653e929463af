"""Alembic's entry: runs the migrations on the connection that the ledger hands over."""

from alembic import context

from slurm_budget.ledger.schema import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    transactional_ddl=connection.dialect.name == "sqlite",
    render_as_batch=connection.dialect.name == "sqlite",
)
context.run_migrations()
