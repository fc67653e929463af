-- The ledger in sqlite, schema 0004. Made by scripts/generate-schemas from
-- slurm_budget/ledger/schema.py, to be read: `sbudget ledger init` makes the tables.

-- sbudget pause and resume; the last row counts
CREATE TABLE brakes (
    id INTEGER NOT NULL,
    cluster_id INTEGER NOT NULL,
    paused BOOLEAN NOT NULL,
    author VARCHAR(255) NOT NULL,
    reason TEXT NOT NULL,
    at BIGINT NOT NULL,
    CONSTRAINT pk_brakes PRIMARY KEY (id)
);
CREATE INDEX ix_brakes_cluster_id ON brakes (cluster_id);

-- who changed budgets, when, why, and what they had seen (base)
CREATE TABLE budget_changesets (
    id INTEGER NOT NULL,
    cluster_id INTEGER NOT NULL,
    base_id INTEGER,
    undoes_id INTEGER,
    author VARCHAR(255) NOT NULL,
    acting_as VARCHAR(255) NOT NULL,
    reason TEXT NOT NULL,
    made_at BIGINT NOT NULL,
    CONSTRAINT pk_budget_changesets PRIMARY KEY (id)
);
CREATE INDEX ix_budget_changesets_cluster_id_made_at ON budget_changesets (cluster_id, made_at);

-- up to when the accounting has been read
CREATE TABLE cursors (
    cluster_id INTEGER NOT NULL,
    position BIGINT NOT NULL,
    CONSTRAINT pk_cursors PRIMARY KEY (cluster_id)
);

-- a requeue that the sweeper set out to do
CREATE TABLE intents (
    id INTEGER NOT NULL,
    cluster_id INTEGER NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    victim_account_id INTEGER NOT NULL,
    for_job BIGINT,
    for_account_id INTEGER NOT NULL,
    gpus INTEGER NOT NULL,
    reason TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_intents PRIMARY KEY (id)
);
CREATE INDEX ix_intents_cluster_id_created_at ON intents (cluster_id, created_at);

-- which of several sidecars acts
CREATE TABLE leases (
    cluster_id INTEGER NOT NULL,
    holder VARCHAR(255) NOT NULL,
    token BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    CONSTRAINT pk_leases PRIMARY KEY (cluster_id)
);

-- GPUs that an account's funded jobs wait for; without account: that can be used. A row where a sweep saw another number than the one before
CREATE TABLE levels (
    id INTEGER NOT NULL,
    cluster_id INTEGER NOT NULL,
    at BIGINT NOT NULL,
    account_id INTEGER,
    type_id INTEGER NOT NULL,
    gpus INTEGER NOT NULL,
    CONSTRAINT pk_levels PRIMARY KEY (id)
);
CREATE INDEX ix_levels_cluster_id_at ON levels (cluster_id, at);

-- whose database this is; the row write-lock is what writers queue at
CREATE TABLE meta (
    name VARCHAR(64) NOT NULL,
    value TEXT NOT NULL,
    CONSTRAINT pk_meta PRIMARY KEY (name)
);

-- texts that repeat: clusters, accounts, users, QOS, partitions, states, GPU sets
CREATE TABLE names (
    id INTEGER NOT NULL,
    text VARCHAR(255) NOT NULL,
    CONSTRAINT pk_names PRIMARY KEY (id),
    CONSTRAINT uq_names_text UNIQUE (text)
);

-- where and when a batch of runs came from
CREATE TABLE recordings (
    id INTEGER NOT NULL,
    source VARCHAR(255) NOT NULL,
    recorded_at BIGINT NOT NULL,
    CONSTRAINT pk_recordings PRIMARY KEY (id)
);

-- every start of every job; a correction is a row with the next revision
CREATE TABLE runs (
    id INTEGER NOT NULL,
    cluster_id INTEGER NOT NULL,
    job_id BIGINT NOT NULL,
    start_at BIGINT NOT NULL,
    revision INTEGER NOT NULL,
    replaces_id INTEGER,
    recording_id INTEGER NOT NULL,
    end_at BIGINT,
    submit_at BIGINT NOT NULL,
    account_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    qos_id INTEGER NOT NULL,
    partition_id INTEGER NOT NULL,
    state_id INTEGER NOT NULL,
    gpus_id INTEGER NOT NULL,
    num_nodes INTEGER NOT NULL,
    suspended BIGINT NOT NULL,
    funded SMALLINT NOT NULL,
    min_runtime BIGINT,
    counts_from BIGINT NOT NULL,
    counts_until BIGINT NOT NULL,
    charged_until BIGINT NOT NULL,
    eligible_at BIGINT,
    time_limit BIGINT,
    CONSTRAINT pk_runs PRIMARY KEY (id),
    CONSTRAINT uq_runs_cluster_id UNIQUE (cluster_id, job_id, start_at, revision)
);
CREATE INDEX ix_runs_account_id_charged_until ON runs (account_id, charged_until) WHERE funded = 1;
CREATE INDEX ix_runs_charged_until ON runs (charged_until) WHERE funded = 1;
CREATE INDEX ix_runs_counts_from ON runs (counts_from);
CREATE INDEX ix_runs_counts_until ON runs (counts_until);

-- sessions that were told of a coming moment, so that each is told once
CREATE TABLE session_notices (
    cluster_id INTEGER NOT NULL,
    moment BIGINT NOT NULL,
    job_id BIGINT NOT NULL,
    kind VARCHAR(16) NOT NULL,
    at BIGINT NOT NULL,
    outcome VARCHAR(16) NOT NULL,
    CONSTRAINT pk_session_notices PRIMARY KEY (cluster_id, moment, job_id, kind)
);

-- cache of the sums in a window, so that a command need not add up a week
CREATE TABLE sums_states (
    cluster_id INTEGER NOT NULL,
    digest VARCHAR(64) NOT NULL,
    at BIGINT NOT NULL,
    last_run_id INTEGER NOT NULL,
    parameters TEXT NOT NULL,
    body BLOB NOT NULL,
    CONSTRAINT pk_sums_states PRIMARY KEY (cluster_id, digest)
);

-- what each sweep said
CREATE TABLE sweeps (
    id INTEGER NOT NULL,
    cluster_id INTEGER NOT NULL,
    at BIGINT NOT NULL,
    milliseconds BIGINT NOT NULL,
    sentence TEXT NOT NULL,
    CONSTRAINT pk_sweeps PRIMARY KEY (id)
);
CREATE INDEX ix_sweeps_cluster_id_at ON sweeps (cluster_id, at);

-- an account as a changeset left it, whole
CREATE TABLE budget_entries (
    id INTEGER NOT NULL,
    changeset_id INTEGER NOT NULL,
    account VARCHAR(255) NOT NULL,
    removed BOOLEAN NOT NULL,
    parent VARCHAR(255),
    amount_kind VARCHAR(16),
    amount BIGINT,
    gres VARCHAR(255) NOT NULL,
    overcommit BOOLEAN NOT NULL,
    valid_from BIGINT,
    valid_until BIGINT,
    managers TEXT NOT NULL,
    aliases TEXT NOT NULL,
    description TEXT NOT NULL,
    CONSTRAINT pk_budget_entries PRIMARY KEY (id),
    CONSTRAINT uq_budget_entries_changeset_id UNIQUE (changeset_id, account),
    CONSTRAINT fk_budget_entries_changeset_id FOREIGN KEY(changeset_id) REFERENCES budget_changesets (id)
);

-- how far it came; the last step is where it stands
CREATE TABLE intent_steps (
    id INTEGER NOT NULL,
    intent_id INTEGER NOT NULL,
    step VARCHAR(16) NOT NULL,
    at BIGINT NOT NULL,
    grace_until BIGINT,
    detail TEXT NOT NULL,
    CONSTRAINT pk_intent_steps PRIMARY KEY (id),
    CONSTRAINT fk_intent_steps_intent_id FOREIGN KEY(intent_id) REFERENCES intents (id)
);
CREATE INDEX ix_intent_steps_intent_id ON intent_steps (intent_id);

-- the users of that account, as the same changeset left them
CREATE TABLE budget_entry_users (
    entry_id INTEGER NOT NULL,
    user VARCHAR(255) NOT NULL,
    amount_kind VARCHAR(16),
    amount BIGINT,
    valid_from BIGINT,
    valid_until BIGINT,
    CONSTRAINT pk_budget_entry_users PRIMARY KEY (entry_id, user),
    CONSTRAINT fk_budget_entry_users_entry_id FOREIGN KEY(entry_id) REFERENCES budget_entries (id)
);
