"""Where runs come from, as slurm.source says."""

from slurm_budget.cli.context import Context
from slurm_budget.usecases.accounting import Source


def source_of(context: Context) -> Source:
    """A reader of the cluster's runs between two epoch seconds."""
    if context.settings.slurm.source == "slurmdbd-sql":
        from slurm_budget.slurm import slurmdbd_sql

        database = slurmdbd_sql.Database.from_slurm(context.commands)
        return lambda since, until: slurmdbd_sql.runs(database, context.cluster, since, until)
    from slurm_budget.slurm import sacct

    return lambda since, until: sacct.runs(context.commands, context.cluster, since, until)
