-- The last hundred runs of which the accounting said something else later: before and after.
-- The end of a run that was first seen running is no correction in this sense and is left out.
SELECT c.text AS cluster, r.job_id, r.start_at, r.revision, d.source, d.recorded_at,
       o.end_at AS end_before, r.end_at AS end_after,
       oa.text AS account_before, a.text AS account_after,
       oq.text AS qos_before, q.text AS qos_after,
       o.min_runtime AS min_runtime_before, r.min_runtime AS min_runtime_after
FROM runs r
JOIN runs o ON o.id = r.replaces_id
JOIN recordings d ON d.id = r.recording_id
JOIN names c ON c.id = r.cluster_id
JOIN names oa ON oa.id = o.account_id
JOIN names a ON a.id = r.account_id
JOIN names oq ON oq.id = o.qos_id
JOIN names q ON q.id = r.qos_id
WHERE o.end_at IS NOT NULL OR o.account_id <> r.account_id OR o.qos_id <> r.qos_id
ORDER BY r.id DESC
LIMIT 100;
