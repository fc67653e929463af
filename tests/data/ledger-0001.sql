-- A ledger of schema 0001 with some of everything in it, as released. Do not change.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE brakes (
	id INTEGER NOT NULL, 
	cluster_id INTEGER NOT NULL, 
	paused BOOLEAN NOT NULL, 
	author VARCHAR(255) NOT NULL, 
	reason TEXT NOT NULL, 
	at BIGINT NOT NULL, 
	CONSTRAINT pk_brakes PRIMARY KEY (id)
);
INSERT INTO "brakes" VALUES(1,1,1,'adm','maintenance',9000);
INSERT INTO "brakes" VALUES(2,1,0,'adm','',9100);
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
INSERT INTO "budget_changesets" VALUES(1,1,NULL,NULL,'root','root','first',1000);
INSERT INTO "budget_changesets" VALUES(2,1,1,NULL,'adm','dean','Q1 plan',2000);
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
	CONSTRAINT fk_budget_entries_changeset_id FOREIGN KEY(changeset_id) REFERENCES budget_changesets (id), 
	CONSTRAINT uq_budget_entries_changeset_id UNIQUE (changeset_id, account)
);
INSERT INTO "budget_entries" VALUES(1,1,'institute',0,NULL,'gpus',32,'gres/gpu',0,NULL,NULL,'["dean"]','[]','all of it');
INSERT INTO "budget_entries" VALUES(2,1,'vision',0,'institute','share',50,'gres/gpu',0,NULL,NULL,'["mara"]','["sight"]','');
INSERT INTO "budget_entries" VALUES(3,1,'language',0,'institute','gpu_hours',900,'gres/gpu:h100',0,NULL,10000000000,'[]','[]','');
INSERT INTO "budget_entries" VALUES(4,1,'old',0,'institute',NULL,NULL,'gres/gpu',0,NULL,NULL,'[]','[]','');
INSERT INTO "budget_entries" VALUES(5,2,'old',1,NULL,NULL,NULL,'gres/gpu',0,NULL,NULL,'[]','[]','');
INSERT INTO "budget_entries" VALUES(6,2,'vision',0,'institute','gpus',12,'gres/gpu',0,NULL,NULL,'["mara"]','["sight"]','');
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
INSERT INTO "budget_entry_users" VALUES(2,'ana',NULL,NULL,NULL,NULL);
INSERT INTO "budget_entry_users" VALUES(2,'ben','gpus',4,100,NULL);
INSERT INTO "budget_entry_users" VALUES(6,'ana',NULL,NULL,NULL,NULL);
INSERT INTO "budget_entry_users" VALUES(6,'ben','gpus',4,100,NULL);
CREATE TABLE cursors (
	cluster_id INTEGER NOT NULL, 
	position BIGINT NOT NULL, 
	CONSTRAINT pk_cursors PRIMARY KEY (cluster_id)
);
INSERT INTO "cursors" VALUES(1,10000);
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
INSERT INTO "intent_steps" VALUES(1,1,'planned',8900,NULL,'');
INSERT INTO "intent_steps" VALUES(2,1,'signalled',8905,8965,'USR1');
INSERT INTO "intent_steps" VALUES(3,2,'planned',8901,NULL,'');
INSERT INTO "intent_steps" VALUES(4,2,'left',8906,NULL,'ended by itself');
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
INSERT INTO "intents" VALUES(1,1,8,4000,4,10,2,2,'language is owed 2 GPUs',8900);
INSERT INTO "intents" VALUES(2,1,5,1,4,NULL,15,1,'node drains',8901);
CREATE TABLE leases (
	cluster_id INTEGER NOT NULL, 
	holder VARCHAR(255) NOT NULL, 
	token BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	CONSTRAINT pk_leases PRIMARY KEY (cluster_id)
);
INSERT INTO "leases" VALUES(1,'ctl1:77',1,10059);
CREATE TABLE meta (
	name VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_meta PRIMARY KEY (name)
);
INSERT INTO "meta" VALUES('application','slurm-budget');
INSERT INTO "meta" VALUES('write-lock','');
CREATE TABLE names (
	id INTEGER NOT NULL, 
	text VARCHAR(255) NOT NULL, 
	CONSTRAINT pk_names PRIMARY KEY (id), 
	CONSTRAINT uq_names_text UNIQUE (text)
);
INSERT INTO "names" VALUES(1,'main');
INSERT INTO "names" VALUES(2,'language');
INSERT INTO "names" VALUES(3,'cleo');
INSERT INTO "names" VALUES(4,'vision');
INSERT INTO "names" VALUES(5,'ana');
INSERT INTO "names" VALUES(6,'funded-vision');
INSERT INTO "names" VALUES(7,'gpu');
INSERT INTO "names" VALUES(8,'RUNNING');
INSERT INTO "names" VALUES(9,'gres/gpu:h100=8,gres/gpu=8');
INSERT INTO "names" VALUES(10,'preemptible');
INSERT INTO "names" VALUES(11,'PREEMPTED');
INSERT INTO "names" VALUES(12,'gres/gpu=2');
INSERT INTO "names" VALUES(13,'COMPLETED');
INSERT INTO "names" VALUES(14,'FAILED');
INSERT INTO "names" VALUES(15,'');
CREATE TABLE recordings (
	id INTEGER NOT NULL, 
	source VARCHAR(255) NOT NULL, 
	recorded_at BIGINT NOT NULL, 
	CONSTRAINT pk_recordings PRIMARY KEY (id)
);
INSERT INTO "recordings" VALUES(1,'sacct',5000);
INSERT INTO "recordings" VALUES(2,'sacct',9999);
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
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT uq_runs_cluster_id UNIQUE (cluster_id, job_id, start_at, revision)
);
INSERT INTO "runs" VALUES(1,1,7,3000,0,NULL,1,NULL,2990,4,5,6,7,8,9,1,0,1,3600,3000,4611686018427387904,6600);
INSERT INTO "runs" VALUES(2,1,8,4000,0,NULL,1,9000,2990,4,5,10,7,11,12,1,0,0,NULL,4000,9000,4000);
INSERT INTO "runs" VALUES(3,1,8,9500,0,NULL,1,9900,2990,4,5,10,7,13,12,1,0,0,NULL,9500,9900,9500);
INSERT INTO "runs" VALUES(4,1,9,5000,0,NULL,1,5100,2990,2,3,6,7,14,15,1,10,1,3600,5010,5100,5100);
INSERT INTO "runs" VALUES(5,1,7,3000,1,1,2,8000,2990,4,5,6,7,13,9,1,0,1,3600,3000,8000,6600);
CREATE TABLE sums_states (
	cluster_id INTEGER NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	at BIGINT NOT NULL, 
	last_run_id INTEGER NOT NULL, 
	parameters TEXT NOT NULL, 
	body BLOB NOT NULL, 
	CONSTRAINT pk_sums_states PRIMARY KEY (cluster_id, digest)
);
INSERT INTO "sums_states" VALUES(1,'602dc783240839ee5017c9c734e6a3a314bdb60fe3239c5373518cf60989b2a9',9999,5,'{"weights": {"h100": 1500}, "window": {"half_life": 604800, "kind": "sliding", "length": 604800}}',X'7801AB564A4A2C4E55B232D0514A4ECDC92956B28A8E562ACB2CCECCCF53D2514ACC4B04924A3A0648D0D0C0C200044042B13A188A330C0D0C94744C8C8DE08A74CCC04C880E8841B1B1B500901D1DA4');
CREATE TABLE sweeps (
	id INTEGER NOT NULL, 
	cluster_id INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	milliseconds BIGINT NOT NULL, 
	sentence TEXT NOT NULL, 
	CONSTRAINT pk_sweeps PRIMARY KEY (id)
);
INSERT INTO "sweeps" VALUES(1,1,9999,250,'1 run makes way');
CREATE INDEX ix_brakes_cluster_id ON brakes (cluster_id);
CREATE INDEX ix_budget_changesets_cluster_id_made_at ON budget_changesets (cluster_id, made_at);
CREATE INDEX ix_intents_cluster_id_created_at ON intents (cluster_id, created_at);
CREATE INDEX ix_runs_charged_until ON runs (charged_until);
CREATE INDEX ix_runs_counts_from ON runs (counts_from);
CREATE INDEX ix_runs_counts_until ON runs (counts_until);
CREATE INDEX ix_sweeps_cluster_id_at ON sweeps (cluster_id, at);
CREATE INDEX ix_intent_steps_intent_id ON intent_steps (intent_id);
COMMIT;
