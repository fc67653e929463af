"""A real Slurm on one machine, in a folder of its own, gone without a trace afterwards.

Imports point downwards only:

    cli         the command line: arguments, root, exit codes
    up, down, control, report
                what the commands do
    daemons     how each daemon is started, and how we know that it answers
    conf        the text of slurm.conf and its friends (pure)
    machine     what is shared with the rest of the machine: ports, Linux users
    packages    Debian's packages
    steps       job processes: Slurm's own children, which we did not start ourselves
    state       state.json: what was asked for, and what we started
    procs       processes, known by (pid, start time)
    layout      where everything lies in the cluster's folder
    base        errors and messages

The promise that shapes it: `down` ends exactly what `up` began, even when `up` was killed at
the worst moment.  So every process is written to state.json *before* it becomes a daemon
(procs.launch), is known by its pid together with its start time, and is never looked up by name.
"""
