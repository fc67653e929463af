-- Where the runs came from: rows by source and day (86400 s), corrections apart.
SELECT d.source, (d.recorded_at - d.recorded_at % 86400) AS day, COUNT(*) AS rows_written,
       SUM(CASE WHEN r.revision > 0 THEN 1 ELSE 0 END) AS corrections
FROM recordings d
JOIN runs r ON r.recording_id = d.id
GROUP BY d.source, (d.recorded_at - d.recorded_at % 86400)
ORDER BY day DESC, d.source;
