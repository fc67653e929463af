-- Runs without an end, the longest first. One that squeue does not know is a runaway row.
SELECT c.text AS cluster, r.job_id, u.text AS user_name, a.text AS account, s.text AS state,
       g.text AS gpus,
       ROUND(((SELECT MAX(recorded_at) FROM recordings) - r.start_at) / 3600.0, 1) AS hours
FROM runs r
JOIN names c ON c.id = r.cluster_id
JOIN names u ON u.id = r.user_id
JOIN names a ON a.id = r.account_id
JOIN names s ON s.id = r.state_id
JOIN names g ON g.id = r.gpus_id
WHERE r.end_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM runs n
                  WHERE n.cluster_id = r.cluster_id AND n.job_id = r.job_id
                    AND n.start_at = r.start_at AND n.revision = r.revision + 1)
ORDER BY r.start_at;
