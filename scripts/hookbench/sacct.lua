-- For comparison: a submit hook that asks sacct what an account has used this week.

local conf = "/nonexistent"

function slurm_job_submit(job_desc, _, _)
    local account = job_desc.account or job_desc.default_account
    if account == nil or (job_desc.tres_per_node or job_desc.tres_per_job) == nil then
        return slurm.SUCCESS
    end
    local pipe = assert(io.popen(string.format(
        "SLURM_CONF=%s sacct -D -X -n -P -a -A %s -S now-7days -o ElapsedRaw,AllocTRES",
        conf, string.gsub(account, "[^%w_-]", "")), "r"))
    local used = 0
    for line in pipe:lines() do
        local seconds, gpus = string.match(line, "^(%d+)|.*gres/gpu=(%d+)")
        if seconds then used = used + tonumber(seconds) * tonumber(gpus) end
    end
    pipe:close()
    job_desc.qos = used < 1e9 and "funded-" .. account or "preemptible"
    return slurm.SUCCESS
end

function slurm_job_modify(_, _, _, _)
    return slurm.SUCCESS
end

return slurm.SUCCESS
