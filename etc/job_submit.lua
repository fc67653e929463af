-- slurm-budget's submit hook, as slurmctld loads it. The logic is in sbudget.lua.
--
-- `sbudget hook install` puts it in place, and keeps what a site sets below. By hand:
--
-- Alone:    copy this file to job_submit.lua beside slurm.conf, set JobSubmitPlugins=lua.
-- Chained:  a site that has a job_submit.lua of its own keeps it, and adds as its last line but one
--               dofile("/etc/slurm-budget/job_submit.lua")
--           Its own functions then run first; what they refuse stays refused, and what they let
--           pass comes here.
--
-- slurmctld notices a change of job_submit.lua itself (`touch` it after a change of anything else)
-- and keeps the old one where the new one is broken.

local settings = {
    logic = "/etc/slurm-budget/sbudget.lua",
    snapshot = "/var/lib/slurm-budget/snapshot",
    -- QOS of jobs that ask for protection while the snapshot cannot be used. It must exist.
    fallback = "preemptible",
    -- "memory": decide here. "exec": ask the program, which takes a new process per submission.
    helper = "memory",
    program = "/usr/bin/sbudget-admit",
    helper_seconds = 2,
    -- Besides root, the user that slurmctld runs as, and the operators named in the snapshot:
    -- uids whose changes to jobs pass unasked, such as the sweeper's where it is none of these.
    trusted_uids = {},
}

local site_submit, site_modify = slurm_job_submit, slurm_job_modify

-- Adler-32: which logic runs, in a few letters.
local function checksum(text)
    local a, b = 1, 0
    for at = 1, #text do
        a = (a + string.byte(text, at)) % 65521
        b = (b + a) % 65521
    end
    return string.format("%04x%04x", b, a)
end

local loaded, hook = pcall(function()
    local file = assert(io.open(settings.logic, "rb"))
    local text = file:read("*a")
    file:close()
    local made = assert((loadstring or load)(text, "@" .. settings.logic))()(settings)
    slurm.log_info("%s", string.format("sbudget: hook %s (%s) loaded", tostring(made.VERSION),
        checksum(text)))
    return made
end)
if not loaded then
    slurm.log_error("%s", "sbudget: jobs pass as they are, the logic cannot be loaded: " .. tostring(hook))
end

local function refused(code)
    return type(code) == "number" and code ~= slurm.SUCCESS
end

function slurm_job_submit(job_desc, part_list, submit_uid)
    local code = site_submit and site_submit(job_desc, part_list, submit_uid)
    if refused(code) then return code end
    if loaded then return hook.submit(job_desc, part_list, submit_uid) end
    -- No QOS has that name: with it, Slurm would refuse the job.
    if job_desc.qos == "funded" then job_desc.qos = settings.fallback end
    return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
    local code = site_modify and site_modify(job_desc, job_rec, part_list, modify_uid)
    if refused(code) then return code end
    if loaded then return hook.modify(job_desc, job_rec, part_list, modify_uid) end
    return slurm.SUCCESS
end

return slurm.SUCCESS
