-- GPU-hours of the last seven days by cluster, account and class, unweighted.
WITH moment AS (SELECT MAX(recorded_at) AS at FROM recordings),
parts AS (
    SELECT r.cluster_id, r.account_id, r.funded,
           SUBSTR(g.text, INSTR(g.text, 'gres/gpu=') + 9) + 0 AS gpus,
           CASE WHEN r.counts_from > m.at - 604800 THEN r.counts_from ELSE m.at - 604800 END AS since,
           CASE WHEN r.counts_until < m.at THEN r.counts_until ELSE m.at END AS until,
           CASE WHEN r.charged_until < m.at THEN r.charged_until ELSE m.at END AS charged_until
    FROM runs r
    JOIN names g ON g.id = r.gpus_id
    CROSS JOIN moment m
    WHERE r.counts_until > m.at - 604800 AND r.counts_from < m.at AND g.text <> ''
      AND NOT EXISTS (SELECT 1 FROM runs n
                      WHERE n.cluster_id = r.cluster_id AND n.job_id = r.job_id
                        AND n.start_at = r.start_at AND n.revision = r.revision + 1)
)
SELECT c.text AS cluster, a.text AS account,
       CASE funded WHEN 1 THEN 'funded' ELSE 'preemptible' END AS class,
       COUNT(*) AS runs,
       ROUND(SUM(gpus * (until - since)) / 3600.0, 1) AS gpu_hours,
       ROUND(SUM(CASE WHEN charged_until > since THEN gpus * (charged_until - since) ELSE 0 END)
             / 3600.0, 1) AS charged_gpu_hours
FROM parts
JOIN names c ON c.id = parts.cluster_id
JOIN names a ON a.id = parts.account_id
GROUP BY c.text, a.text, funded
ORDER BY gpu_hours DESC;
