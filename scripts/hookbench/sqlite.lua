-- For comparison: a submit hook that asks an SQLite database for the budgets that a job must fit.

local path = "/nonexistent"
local driver = require("luasql.sqlite3").sqlite3()

local function balance(db, query)
    local cursor = assert(db:execute(query))
    local parent, left = cursor:fetch()
    cursor:close()
    return parent, tonumber(left)
end

function slurm_job_submit(job_desc, _, _)
    local account = job_desc.account or job_desc.default_account
    if account == nil or (job_desc.tres_per_node or job_desc.tres_per_job) == nil then
        return slurm.SUCCESS
    end
    local db = assert(driver:connect(path))
    local name, user = db:escape(account), db:escape(job_desc.user_name or "")
    local fits, at = true, name
    local _, own = balance(db, string.format(
        "SELECT '', balance FROM users WHERE account = '%s' AND user = '%s'", name, user))
    if own and own <= 0 then fits = false end
    while at and at ~= "" do
        local parent, left = balance(db, string.format(
            "SELECT parent, balance FROM accounts WHERE name = '%s'", at))
        if left and left <= 0 then fits = false end
        at = parent
    end
    db:close()
    job_desc.qos = fits and "funded-" .. account or "preemptible"
    return slurm.SUCCESS
end

function slurm_job_modify(_, _, _, _)
    return slurm.SUCCESS
end

return slurm.SUCCESS
