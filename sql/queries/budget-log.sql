-- Who changed which account, when and why; the amount as the changeset left it. Newest first.
SELECT s.id AS changeset, c.text AS cluster, s.made_at, s.author, s.acting_as, s.reason,
       e.account, CASE WHEN e.removed THEN 'removed' ELSE e.amount_kind END AS kind, e.amount,
       e.gres
FROM budget_changesets s
JOIN budget_entries e ON e.changeset_id = s.id
JOIN names c ON c.id = s.cluster_id
ORDER BY s.id DESC, e.id;
