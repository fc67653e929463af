-- What the sweeper set out to do and how far it came, newest first.
SELECT i.id, c.text AS cluster, i.job_id, v.text AS from_account, f.text AS for_account,
       i.for_job, i.gpus, i.created_at, p.step, p.at AS step_at, i.reason, p.detail
FROM intents i
JOIN intent_steps p ON p.intent_id = i.id
  AND p.id = (SELECT MAX(l.id) FROM intent_steps l WHERE l.intent_id = i.id)
JOIN names c ON c.id = i.cluster_id
JOIN names v ON v.id = i.victim_account_id
JOIN names f ON f.id = i.for_account_id
ORDER BY i.id DESC
LIMIT 200;
