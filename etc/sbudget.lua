-- slurm-budget's decision at submission, in one file for Lua 5.1 to 5.4.
--
-- slurmctld calls this under its locks, so it asks nobody: it reads the snapshot that the sweep
-- published, and of that the few lines that a job needs, once. The rules are those of
-- slurm_budget/core/request.py and admission.py, in the same order and with the same words; one
-- table of cases runs through both, and drawn requests are compared.
--
-- Whatever goes wrong here, the job passes as it is. The one exception is a QOS of exactly `funded`:
-- users ask by that name, and no such QOS exists, so it is never left standing.
--
-- Order of this file: what slurmctld calls, the verdict, the budgets, the request, the texts of
-- Slurm, the marker, messages, the snapshot, promises, changes to jobs, the helper program.

local NO_VAL, INFINITE = 4294967294, 4294967295
local MOST = 9007199254740992      -- 2^53: up to here Lua 5.1 counts every whole number
local MOST_COUNT = 1000000000      -- more GPUs, nodes or tasks are a mistake or an attack
local CLOCK_SKEW = 300             -- seconds that a snapshot may be ahead of the clock
local SWITCH_WAIT = 300            -- seconds to wait for nodes under one switch
local DEEPEST = 64                 -- levels of a tree of accounts; more is a loop
local QUIET = 60                   -- seconds between two log lines about trouble
local PAGE = 4096                  -- bytes of the snapshot that are read at once
local ENTRY = 16                   -- bytes of a line of its index
local LONGEST_CHAIN = 32           -- lines of the index that a search has to look at
local PRIME = 17592186044399       -- 2^44 - 17; see slurm_budget/core/snapshot_index.py
local KEEP_NAMES = 3600            -- seconds that the names of users are remembered
local MOST_JOBS = 1000             -- kinds of requests that are remembered
local FEW_FIELDS = 20              -- fields of a request that are always read
local GPU = "gres/gpu"
local PREFIX = "sbudget: "

local M = {}      -- all functions, so that they can stand in reading order
M.VERSION = "0.1.0"
local settings    -- the loader's table
local now         -- epoch seconds of the call that is being answered

local state = {
    header = nil,            -- first line of the snapshot that `facts` is of
    facts = nil,             -- see M.snapshot
    file = nil,              -- the snapshot, open while a call is answered
    fields = {},             -- see M.fields_read
    kinds = nil,             -- see M.kinds
    names = {},              -- of users, by uid, since `named`
    named = 0,
    made = {}, sums = {},    -- promises since then: {second, {budget = GPU-ms}}, and their sums
    complained = nil,        -- when trouble was last logged, and how often not since
    kept_quiet = 0,
    het_is_batch = false,    -- of the het job whose components are being submitted
}

----------------------------------------------------------------- what slurmctld calls

function M.submit(job_desc, part_list, _)
    return M.guarded(M.admit, job_desc, nil, part_list)
end

function M.modify(job_desc, job_rec, part_list, uid)
    return M.guarded(M.change, job_desc, job_rec, part_list, uid)
end

-- Does `work`; when that fails, the job passes unchanged and the log says so.
function M.guarded(work, job_desc, job_rec, part_list, uid)
    now = settings.clock and settings.clock() or os.time()
    local fine, answer = pcall(work, job_desc, job_rec, part_list, uid)
    M.close_snapshot()
    if fine then return answer end
    pcall(M.complain, "a job passes as it is: " .. tostring(answer))
    pcall(function()
        if M.lower(job_desc.qos) == "funded" then
            job_desc.qos = job_rec and job_rec.qos or settings.fallback
        end
    end)
    return slurm.SUCCESS
end

function M.admit(job_desc, _, part_list)
    if not M.may_use_gpus(job_desc) then return slurm.SUCCESS end
    local verdict = M.verdict(job_desc, part_list)
    for name, value in pairs(verdict.changes) do job_desc[name] = value end
    if next(verdict.promise) then M.promise(verdict.promise) end
    if #verdict.messages > 0 then M.tell(verdict.messages) end
    return verdict.reject and M.refusal() or slurm.SUCCESS
end

-- Most jobs of a mixed cluster ask for no GPU and cost these few reads.
function M.may_use_gpus(d)
    return d.tres_per_node or d.tres_per_job or d.tres_per_task or d.tres_per_socket
        or d.shared == 0 or M.count16(d.ntasks_per_tres) or M.count16(d.ntasks_per_gpu)
        or M.is_funded(M.lower(d.qos))
end

----------------------------------------------------------------- the verdict

-- {class, why, changes = {field = value}, messages = lines for the user, lines = what they begin
-- with, shown or not, promise = {budget = GPU-ms}, reject}; no class: not ours.
function M.verdict(job_desc, part_list)
    local more = M.beside(job_desc, part_list)
    if settings.helper == "exec" then
        local fine, verdict = pcall(M.ask_program, job_desc, more)
        if fine then return verdict end
        M.complain("decided without the helper program: " .. tostring(verdict))
    end
    local facts = M.snapshot()
    return M.judge(M.job_seen(job_desc, more, facts), more.account, job_desc, facts)
end

function M.decide(request)
    local facts = M.snapshot()
    local job = M.job(request, facts and facts.policy or M.plain_policy())
    return M.judge(job, request.account or "", request.desc, facts)
end

-- `job` may be one of an earlier call (M.job_seen), so what is of this call is set here.
function M.judge(job, account_name, job_desc, facts)
    local policy, asked, default = job.policy, job.asked, job.default
    local blind = facts == nil or not M.usable(facts)
    local keep = not blind or job.request.qos == policy.preemptible_qos
    job.preemptible_qos = keep and policy.preemptible_qos or settings.fallback
    job.account = account_name ~= "" and account_name or nil
    job.desc, job.placed = job_desc, not blind
    if asked == nil then return M.untouched() end
    if next(job.gpus) == nil then
        -- A funded QOS would let it preempt for CPUs, at no cost to any budget.
        if not M.is_funded(job.request.qos) then return M.untouched() end
        local verdict = M.untouched({ qos = job.preemptible_qos })
        verdict.lines = { M.say_no_gpus() }
        if policy.messages then verdict.messages = M.prefixed(verdict.lines) end
        return verdict
    end
    local account = not blind and M.account(job.account) or nil
    -- Nothing was asked of us, and nothing is known to us: Slurm's own DefaultQOS rules.
    if default and account == nil then return M.untouched() end

    if asked == "preemptible" then
        if default then return M.preemptible(job, "default", M.say_default()) end
        return M.preemptible(job, "asked", M.say_asked())
    end
    if blind then return M.preemptible(job, "blind", M.say_blind()) end
    if account == nil or account.qos == "" then
        return M.preemptible(job, "account", M.say_no_account(job.account))
    end
    if not M.type_is_paid(account, job.gpus) then
        return M.preemptible(job, "type", M.say_wrong_type(account))
    end
    if not job.requeueable and job.limit > job.min_runtime then
        return M.preemptible(job, "requeue", M.say_unrequeueable(job))
    end
    return M.by_budget(job, account)
end

function M.by_budget(job, account)
    local tight, never, why, promise = nil, nil, "fits", {}
    local costs, sums, small, budgets = job.costs, state.sums, job.small, M.budgets(job, account)
    for index = 1, #budgets do
        local facts = budgets[index]
        local cost = costs[facts.gres]
        if cost == nil then
            cost = M.cost(job, M.rate(job.gpus, job.policy.weights, facts.gres))
            costs[facts.gres] = cost
        end
        -- A budget above that counts none of its GPUs does not bound it.
        if cost > 0 or facts == account then
            local spent = sums[facts.key] or 0
            local left = (small and facts.fast or facts.balance) - spent
            if cost > facts.balance - spent then why = "fast" end
            if cost > 0 then promise[facts.key] = cost end
            if tight == nil then
                tight = { facts = facts, left = left, cost = cost, slack = left - cost }
            elseif left - cost < tight.slack then
                tight.facts, tight.left, tight.cost, tight.slack = facts, left, cost, left - cost
            end
            if never == nil and left < cost and cost > facts.budget then
                never = { facts = facts, cost = cost }
            end
        end
    end
    if tight.slack >= 0 then return M.funded(job, account.qos, why, tight, promise) end
    local exhausted = job.policy.on_exhausted
    if never then
        if exhausted == "reject" then return M.rejected(job, "never", M.say_never("rejected", never)) end
        return M.preemptible(job, "never", M.say_never("preemptible", never))
    end
    local verdict
    if exhausted == "reject" then
        verdict = M.rejected(job, "budget", M.say_rejected(tight))
    elseif exhausted == "wait" and M.number(job.desc.priority) ~= 0 then
        verdict = M.preemptible(job, "wait", M.say_held(tight))
        -- Held, and preemptible: should its user release it, it costs no budget anything.
        verdict.changes.priority = 0
    else
        verdict = M.preemptible(job, "budget", M.say_exhausted(tight))
    end
    verdict.short = M.out_of(tight)
    return verdict
end

-- Class, and whether that is only the site's default; nil: a QOS that is not ours.
function M.class_asked(request, policy)
    if M.is_funded(request.qos) then return "funded", false end
    if request.qos == policy.preemptible_qos then return "preemptible", false end
    if request.qos ~= "" then return nil, false end
    if request.declared then
        return request.declared > 0 and "funded" or "preemptible", false
    end
    return policy.default_class, true
end

-- `funded` is what users ask by, and no QOS of Slurm's; `funded-vision` is one.
function M.is_funded(qos)
    return qos == "funded" or string.sub(qos, 1, 7) == "funded-"
end

function M.untouched(changes)
    return { changes = changes or {}, messages = {}, lines = {}, promise = {} }
end

function M.preemptible(job, why, lines)
    return {
        class = "preemptible", why = why, changes = M.changes(job, "preemptible", why, job.preemptible_qos),
        lines = lines, messages = M.messages(job, lines), promise = {},
    }
end

function M.funded(job, qos, why, tight, promise)
    local lines = { why == "fits" and M.say_funded(job, tight) or M.say_fast_lane(job, tight) }
    return {
        class = "funded", why = why, changes = M.changes(job, "funded", why, qos),
        lines = lines, messages = M.messages(job, lines), promise = promise,
    }
end

-- Told even where messages are off: nobody can act on a refusal without its reason.
function M.rejected(_, why, lines)
    return {
        class = "preemptible", why = why, changes = {}, lines = lines, messages = M.prefixed(lines),
        promise = {}, reject = true,
    }
end

function M.changes(job, class, why, qos)
    local request, out = job.request, {}
    if request.qos_given ~= qos then out.qos = qos end
    -- Slurm would shorten the job by it.
    if request.has_time_min then out.time_min = NO_VAL end
    if job.account then
        local said = job.comments[class .. why]
        if said == nil then
            said = M.merge(request.admin_comment,
                M.marker(class, job.asked, job.min_runtime, why, job.requeueable))
            job.comments[class .. why] = said
        end
        out.admin_comment = said
    end
    if job.placed then M.place(job, out) end
    return out
end

-- Near each other where Slurm would not see to it; what the user chose stays.
function M.place(job, out)
    local request, policy = job.request, job.policy
    if request.one_node_possible then
        local per_node = M.node_gpus(request, policy)
        if M.total(job.gpus) <= per_node and not M.wants_several(request, policy) then
            out.min_nodes, out.max_nodes = 1, 1
            return
        end
    end
    if policy.topology and request.multi_node and not M.count(job.desc.req_switch) then
        out.req_switch, out.wait4switch = 1, SWITCH_WAIT
    end
end

-- Whether a partition of the request starts no job on one node (MinNodes).
function M.wants_several(request, policy)
    if policy.several_nodes == "" then return false end
    for name in string.gmatch(request.partition, "[^,]+") do
        if string.find("," .. policy.several_nodes .. ",", "," .. name .. ",", 1, true) then return true end
    end
    return false
end

----------------------------------------------------------------- the job and the budgets

-- What a request means, whoever asks; the first of these fields decide the rest:
-- {request, policy, asked, default, gpus = {type = count}, whole_nodes, limit and min_runtime in
-- seconds, cut, requeueable, rate, small, costs = {gres = GPU-ms}, comments = {class and why = text}}.
function M.job(request, policy)
    local gpus, whole_nodes = M.gpus_of(request, policy)
    local asked, default = M.class_asked(request, policy)
    local job = {
        request = request, policy = policy, asked = asked, default = default, gpus = gpus,
        whole_nodes = whole_nodes, costs = {}, comments = {},
    }
    local declared, cap = request.declared or 0, policy.min_runtime_cap
    job.limit = request.time_limit or math.huge
    job.min_runtime = math.min(declared > 0 and declared or policy.min_runtime, cap, job.limit)
    job.cut = declared > cap and declared or nil
    local allowed = request.requeue
    if allowed == nil then allowed = policy.job_requeue end
    job.requeueable = allowed and request.batch
    job.rate = M.rate(gpus, policy.weights, GPU)
    job.small = job.limit < math.huge and policy.fast_lane_gpu_time > 0
        and M.times(M.times(job.rate, job.limit), request.at_once) <= policy.fast_lane_gpu_time * 1000
    return job
end

-- The job of a request. It is the same for the same fields and the same settings, and most requests
-- have fields that one before them had: those of the same settings are kept in a tree with a level a
-- field.
function M.job_seen(d, more, facts)
    if facts == nil then return M.job(M.read(d, more), M.plain_policy()) end
    local fields, count = M.fields_read(d, more)
    local kinds = facts.kinds
    local at = kinds.jobs
    for index = 1, count do
        at = at[fields[index]]
        if at == nil then
            local job = M.job(M.read(d, more), kinds.policy)
            if count > FEW_FIELDS or not job.request.looked_further then
                M.keep_job(job, fields, count, kinds)
            end
            return job
        end
    end
    return at
end

function M.keep_job(job, fields, count, kinds)
    if kinds.kept >= MOST_JOBS then kinds.jobs, kinds.kept = {}, 0 end
    kinds.kept = kinds.kept + 1
    local at = kinds.jobs
    for index = 1, count - 1 do
        local below = at[fields[index]] or {}
        at[fields[index]], at = below, below
    end
    at[fields[count]] = job
end

-- What M.read reads, `false` for what is not set, and how many they are. Where the first four say
-- enough it does not look at the last six (see M.gpus_asked). One table for all calls.
function M.fields_read(d, more)
    local out, count = state.fields, FEW_FIELDS
    local per_node, per_job = d.tres_per_node or false, d.tres_per_job or false
    local per_task, per_socket = d.tres_per_task or false, d.tres_per_socket or false
    out[1], out[2], out[3], out[4] = per_node, per_job, per_task, per_socket
    out[5], out[6], out[7] = d.qos or false, d.comment or false, d.admin_comment or false
    out[8], out[9], out[10] = d.time_min or false, d.time_limit or false, d.partition or false
    out[11], out[12], out[13] = d.min_nodes or false, d.max_nodes or false, d.num_tasks or false
    out[14], out[15], out[16] = d.ntasks_per_node or false, d.shared or false, d.array_inx or false
    out[17], out[18] = d.requeue or false, more.batch
    out[19], out[20] = more.default_time or false, more.default_partition or false
    if per_job or per_socket or not per_node then
        count = count + 6
        out[21], out[22] = d.cpus_per_tres or false, d.mem_per_tres or false
        out[23], out[24] = d.req_nodes or false, d.sockets_per_node or false
        out[25], out[26] = d.ntasks_per_tres or false, d.ntasks_per_gpu or false
    end
    for index = 1, count do
        -- What is not a number is no key, and M.read takes it for not set.
        if out[index] ~= out[index] then out[index] = false end
    end
    return out, count
end

-- GPUs by type of one task, and whether whole nodes made them more than were asked for: a job that
-- takes whole nodes gets all their GPUs from Slurm.
function M.gpus_of(request, policy)
    if not request.exclusive then return request.gpus, false end
    local _, most = M.node_gpus(request, policy)
    local more = request.nodes * most - M.total(request.gpus)
    if more <= 0 then return request.gpus, false end
    local out, kinds, kind = {}, 0, ""
    for name, count in pairs(request.gpus) do
        out[name], kinds, kind = count, kinds + 1, name
    end
    if kinds ~= 1 then kind = "" end
    out[kind] = (out[kind] or 0) + more
    return out, true
end

-- The fewest and the most GPUs that a node has in the partitions of a request.
function M.node_gpus(request, policy)
    if not policy.has_partitions then return policy.node_gpus, policy.node_gpus end
    local fewest, most
    for name in string.gmatch(request.partition, "[^,]+") do
        local gpus = policy.partition_gpus[name] or 0
        fewest, most = math.min(fewest or gpus, gpus), math.max(most or gpus, gpus)
    end
    return fewest or 0, most or 0
end

-- Every budget that the job must fit: the user's own, the account's, and those above.
function M.budgets(job, account)
    if account.users == "0" then return M.chain(account) end
    local user = M.user_name(job.desc)
    local known = account.of_user[user]
    if known == nil then
        local own = M.user(account, user)
        known = M.chain(account)
        if own then
            local above = known
            known = { own }
            for index = 1, #above do known[index + 1] = above[index] end
        end
        account.of_user[user] = known
    end
    return known
end

-- Slurm reads /etc/passwd, or asks the site's directory, for every name that it is asked for.
function M.user_name(d)
    local uid = M.number(d.user_id)
    if uid == nil then return M.text(d.user_name) end
    if now - state.named > KEEP_NAMES or now < state.named then state.names, state.named = {}, now end
    local name = state.names[uid] or M.text(d.user_name)
    -- A directory that does not answer now may do so for the next job.
    if name ~= "" then state.names[uid] = name end
    return name
end

function M.chain(account)
    if account.chain == nil then
        account.chain = {}
        local at, depth = account, 0
        while at and depth < DEEPEST do
            if at.qos ~= "" then account.chain[#account.chain + 1] = at end
            at, depth = at.parent and M.account_by_name(at.parent), depth + 1
        end
    end
    return account.chain
end

function M.only_type(gres)
    if gres == GPU then return nil end
    if string.sub(gres, 1, #GPU + 1) == GPU .. ":" then return string.sub(gres, #GPU + 2) end
    return gres
end

function M.type_is_paid(account, gpus)
    local only = M.only_type(account.gres)
    if only == nil then return true end
    for kind in pairs(gpus) do
        if kind ~= "" and kind ~= only then return false end
    end
    return true
end

-- Thousandths of a GPU that a budget for `gres` counts. A GPU whose type was not named may turn out
-- to be of any, so it counts for each of them.
function M.rate(gpus, weights, gres)
    local only, total = M.only_type(gres), 0.0
    if only then gpus = { [only] = (gpus[only] or 0) + (only ~= "" and gpus[""] or 0) } end
    for kind, count in pairs(gpus) do total = total + count * (weights[kind] or 1000) end
    return math.min(total, MOST)
end

function M.cost(job, rate)
    return M.times(M.times(rate, job.min_runtime), job.request.at_once)
end

function M.times(a, b)
    return math.min((a + 0.0) * b, MOST)
end

function M.total(gpus)
    local sum = 0
    for _, count in pairs(gpus) do sum = sum + count end
    return sum
end

----------------------------------------------------------------- the request

-- What the verdict depends on and job_desc does not say, in the spelling of the JSON that
-- sbudget-admit reads.
function M.beside(job_desc, part_list)
    local more = { batch = M.is_batch(job_desc), account = M.lower(job_desc.account) }
    if more.account == "" then more.account = M.lower(job_desc.default_account) end
    if part_list then M.partition_fields(job_desc, part_list, more) end
    return more
end

-- Only the first component of a het job brings the script.
function M.is_batch(job_desc)
    local batch = M.text(job_desc.script) ~= ""
    if not batch and M.count(job_desc.het_job_offset or job_desc.pack_job_offset) then
        return state.het_is_batch
    end
    state.het_is_batch = batch
    return batch
end

-- A job without a partition gets the default one; a job without a time limit its DefaultTime, or
-- else its MaxTime; of several partitions we take the longest.
function M.partition_fields(job_desc, part_list, more)
    local limit = M.number(job_desc.time_limit)
    -- Which partition it is matters where the GPUs of its nodes do; see M.node_gpus.
    if limit and job_desc.shared ~= 0 and not job_desc.tres_per_job and settings.helper ~= "exec" then
        return
    end
    local wanted = M.text(job_desc.partition)
    if wanted == "" then
        for name, partition in pairs(part_list) do
            if partition.flag_default == 1 then wanted = tostring(name) end
        end
        more.default_partition = wanted
    end
    if limit then return end
    for name in string.gmatch(wanted, "[^,]+") do
        local partition = part_list[name]
        local minutes = partition and (M.number(partition.default_time) or M.number(partition.max_time))
        if minutes and (more.default_time == nil or minutes > more.default_time) then
            more.default_time = minutes
        end
    end
    if more.default_time == math.huge then more.default_time = INFINITE end
end

-- Every field of job_desc costs time, so those that few jobs need are read where they are needed.
function M.read(d, more)
    local min_nodes, max_nodes = M.count(d.min_nodes), M.count(d.max_nodes)
    local tasks, per_node = M.count(d.num_tasks), M.count16(d.ntasks_per_node)
    local nodes = math.max(min_nodes or 0, max_nodes or 0)
    if nodes == 0 then nodes = tasks and per_node and math.ceil(tasks / per_node) or 1 end
    local declared, bad = M.declared(M.text(d.comment))
    local time_min = M.number(d.time_min)
    if declared == nil and time_min then
        -- `--time-min=0` arrives as INFINITE: sbatch turns the 0 of every time option into that.
        declared = time_min == math.huge and 0 or time_min * 60
    end
    local limit = M.number(d.time_limit) or M.number(more.default_time)
    local qos, partition, requeue = M.text(d.qos), M.text(d.partition), M.number16(d.requeue)
    local gpus, only_per_job, looked_further = M.gpus_asked(d, nodes, tasks, per_node)
    local request = {
        desc = d, account = more.account ~= "" and more.account or nil, batch = more.batch,
        qos = string.lower(qos), qos_given = qos,
        partition = partition ~= "" and partition or more.default_partition or "",
        gpus = gpus, nodes = nodes, multi_node = (min_nodes or nodes) > 1,
        exclusive = M.number(d.shared) == 0, at_once = M.at_once(M.text(d.array_inx)),
        time_limit = limit and limit * 60, declared = declared, bad_declared = bad,
        looked_further = looked_further, has_time_min = time_min ~= nil,
        admin_comment = M.text(d.admin_comment),
        one_node_possible = only_per_job and min_nodes == nil and max_nodes == nil
            and (tasks or 1) == 1 and M.one_node_possible(d),
    }
    if requeue then request.requeue = requeue ~= 0 end
    return request
end

-- GPUs by type of one array task, "" the type of those that were not named; whether `--gpus` is what
-- says it; and whether no TRES said it, so that tasks per GPU were looked at.
function M.gpus_asked(d, nodes, tasks, per_node)
    local per_job = M.text(d.tres_per_job)
    if per_job ~= "" then
        local gpus = M.gpus(per_job)
        if next(gpus) then return gpus, true end
    end
    local all_tasks = tasks or nodes * (per_node or 1)
    local most = M.multiplied(d.tres_per_task, all_tasks)
    local on_nodes = M.multiplied(d.tres_per_node, nodes)
    if M.total(on_nodes) > M.total(most) then most = on_nodes end
    if M.text(d.tres_per_socket) ~= "" then
        local sockets = M.count16(d.sockets_per_node) or 1
        local on_sockets = M.multiplied(d.tres_per_socket, nodes * sockets)
        if M.total(on_sockets) > M.total(most) then most = on_sockets end
    end
    if next(most) then return most, per_job ~= "" end
    local per_gpu = M.count16(d.ntasks_per_tres) or M.count16(d.ntasks_per_gpu)
    return per_gpu and { [""] = math.ceil(all_tasks / per_gpu) } or {}, per_job ~= "", true
end

function M.multiplied(text, factor)
    if M.text(text) == "" then return M.NONE end
    local gpus = M.gpus(text)
    if factor == 1 then return gpus end
    for kind, count in pairs(gpus) do gpus[kind] = count * factor end
    if M.total(gpus) > MOST_COUNT then error("an absurd number of GPUs", 0) end
    return gpus
end

M.NONE = {}

-- Whether only `--gpus` says what is needed. With CPUs or memory per GPU, several tasks or named
-- nodes, one node might not hold it, and the job would be refused where two could run it.
function M.one_node_possible(d)
    local function no(text) return M.text(text) == "" end
    return no(d.tres_per_node) and no(d.tres_per_task) and no(d.tres_per_socket)
        and no(d.cpus_per_tres) and no(d.mem_per_tres) and no(d.req_nodes)
end

-- Seconds that `min-runtime=` in a comment declares; or nil and the text that is no time.
function M.declared(comment)
    if comment == "" then return nil end
    local key, from = "min-runtime=", 1
    while true do
        local first, last = string.find(comment, key, from, true)
        if first == nil then return nil end
        if first == 1 or string.find(string.sub(comment, first - 1, first - 1), "[%s,;]") then
            local value = string.match(comment, "^[^%s,;]*", last + 1)
            local seconds = M.duration(string.lower(value))
            if seconds then return seconds end
            return nil, value
        end
        from = last + 1
    end
end

----------------------------------------------------------------- the texts of Slurm

M.UNIT = { s = 1, sec = 1, m = 60, min = 60, h = 3600, d = 86400 }

-- Seconds of 90s, 30m, 30min, 4h, 1h30m, 1.5h, 1d; a plain number is minutes and colons are as in
-- `--time`. nil: it is none.
function M.duration(text)
    if string.find(text, "%a") then
        local at, milli = 1, 0
        while at <= #text do
            local whole, part, unit, after = string.match(text, "^(%d+)(%.?%d*)(%l+)()", at)
            if whole == nil or #whole > 9 or #part > 4 or part == "." or not M.UNIT[unit] then
                return nil
            end
            local thousandths = tonumber(string.sub(string.sub(part, 2) .. "000", 1, 3))
            milli = milli + (tonumber(whole) * 1000 + thousandths) * M.UNIT[unit]
            at = after
        end
        return M.div(milli, 1000)
    end
    local days, rest = string.match(text, "^(%d+)%-(.*)$")
    local parts = {}
    for part in string.gmatch((rest or text) .. ":", "([^:]*):") do
        if not string.find(part, "^%d+$") or #part > 9 then return nil end
        parts[#parts + 1] = tonumber(part)
    end
    if #parts == 0 or #parts > 3 or (days and #days > 9) then return nil end
    local a, b, c = parts[1], parts[2] or 0, parts[3] or 0
    if days then return tonumber(days) * 86400 + a * 3600 + b * 60 + c end
    if #parts == 3 then return a * 3600 + b * 60 + c end
    return a * 60 + b
end

-- How many tasks of an array such as 0-15:4%2 may run at once.
function M.at_once(array)
    if array == "" then return 1 end
    if string.find(array, M.LONG_NUMBER) then error("an absurd array", 0) end
    local body, throttle = string.match(array, "^([^%%]*)%%?(.*)$")
    local count = 0
    for piece in string.gmatch(body, "[^,]+") do
        piece = M.trim(piece)
        if piece ~= "..." and piece ~= "" then
            local first, last, step = string.match(piece, "^(%d+)%-(%d+):(%d+)$")
            if first == nil then first, last = string.match(piece, "^(%d+)%-(%d+)$") end
            if first == nil then first = string.match(piece, "^(%d+)$") end
            first, last, step = tonumber(first), tonumber(last or first), tonumber(step or 1)
            if first == nil or last < first or step == 0 then error("a bad array", 0) end
            count = count + M.div(last - first, step) + 1
        end
    end
    local limit = string.find(throttle, "^%d+$") and tonumber(throttle) or 0
    if limit > 0 and limit < count then count = limit end
    if count > MOST_COUNT then error("an absurd array", 0) end
    return math.max(count, 1)
end

M.LONG_NUMBER = string.rep("%d", 10)
M.SUFFIX = { [""] = 1, k = 1024, K = 1024, m = 1048576, M = 1048576 }
M.NOTHING = { [""] = true, ["N/A"] = true, ["(null)"] = true, ["None"] = true }

-- GPUs by type in `gres:gpu:8`, `gres/gpu:h100:8,gres/nvme:1`, `gres/gpu=1`, `gpu:h100`; where typed
-- and untyped stand side by side, the untyped figure is the sum of all.
function M.gpus(text)
    -- Nearly every request is one of these two.
    local kind, count = "", string.match(text, "^gres[:/]gpu:(%d+)$")
    if count == nil then kind, count = string.match(text, "^gres[:/]gpu:([^:=,()]+):(%d+)$") end
    if count and #count < 10 then
        count = tonumber(count)
        return count > 0 and { [kind] = count } or {}
    end
    text = M.trim(text)
    if M.NOTHING[text] then return {} end
    if string.find(text, M.LONG_NUMBER) then error("an absurd number of GPUs", 0) end
    if string.find(text, "[=,:]$") then error("a GPU request that is cut off", 0) end
    local out, typed, untyped = {}, 0, 0
    for _, item in ipairs(M.items(text)) do
        kind, count = M.gpu(M.trim(item))
        if kind == "" then
            untyped = untyped + count
        elseif kind then
            out[kind], typed = (out[kind] or 0) + count, typed + count
        end
    end
    if untyped > typed then out[""] = untyped - typed end
    for name, number in pairs(out) do
        if number == 0 then out[name] = nil end
    end
    return out
end

-- Type and count of one item; nil for what is no GPU, such as gres/gpumem or gres/shard.
function M.gpu(item)
    local rest = string.match(item, "^gres[:/]gpu(.*)$") or string.match(item, "^gpu(.*)$")
    if rest == nil then return nil end
    rest = string.match(rest, "^([^()]*)%([^)]*%)$") or rest
    if rest == "" then return "", 1 end
    if string.find(rest, "[()]") then return nil end
    local mark, body = string.sub(rest, 1, 1), string.sub(rest, 2)
    local kind, tail = string.match(body, "^([^=:]+)[=:](.*)$")
    if mark == "=" then kind, tail = "", body end
    if mark ~= "=" and mark ~= ":" then return nil end
    if mark == ":" and kind == nil then
        if string.find(body, "^%d+$") then return "", tonumber(body) end
        if body == "" or string.find(body, "[=:]") then return nil end
        return body, 1
    end
    local digits, suffix = string.match(tail, "^(%d+%.?%d*)([kKmM]?)$")
    if digits == nil or string.find(digits, "%.$") then return nil end
    return kind, math.floor(tonumber(digits) * M.SUFFIX[suffix])
end

-- Cut at commas, but not inside `(IDX:0-3,5)`.
function M.items(text)
    local out, depth, from = {}, 0, 1
    for at = 1, #text + 1 do
        local char = at > #text and "," or string.sub(text, at, at)
        if char == "(" then depth = depth + 1 end
        if char == ")" then depth = depth - 1 end
        if char == "," and (depth <= 0 or at > #text) then
            if at > from then out[#out + 1] = string.sub(text, from, at - 1) end
            from = at + 1
        end
    end
    return out
end

-- A number of a 32-bit field: whole, or math.huge for INFINITE; nil where it is not set.
function M.number(value)
    if value == nil or value == NO_VAL or type(value) ~= "number" then return nil end
    if not (value >= 0 and value < INFINITE) then
        return value == INFINITE and math.huge or nil
    end
    return math.floor(value)
end

-- The same of a 16-bit field, whose "not set" is another number.
function M.number16(value)
    if value == 65534 or value == 65535 or value == INFINITE then return nil end
    return M.number(value)
end

-- How many of something: 0, unlimited and absurd numbers are as good as not set.
function M.count(value)
    if value == nil or value == NO_VAL then return nil end
    value = M.number(value)
    return value and value > 0 and value <= MOST_COUNT and value or nil
end

function M.count16(value)
    return M.number16(value) and M.count(value)
end

function M.text(value)
    return type(value) == "string" and value or ""
end

function M.lower(value)
    return string.lower(M.text(value))
end

----------------------------------------------------------------- the marker in AdminComment

function M.marker(class, asked, min_runtime, why, requeueable)
    return string.format("sbudget:1:c=%s:a=%s:m=%d:w=%s%s", class, asked, min_runtime, why,
        requeueable and "" or ":r=0")
end

-- Where our markers of any version stand in `text`: {first, last}, in order.
function M.markers(text)
    local out, from = {}, 1
    while true do
        local first = string.find(text, "sbudget:%d+", from)
        if first == nil then return out end
        local _, last = string.find(text, "^sbudget:%d+", first)
        from = last + 1
        if first == 1 or not string.find(string.sub(text, first - 1, first - 1), "[%w_]") then
            while true do
                local _, further = string.find(text, "^:%l+=[%l%d-]*", last + 1)
                if further == nil then break end
                last = further
            end
            out[#out + 1] = { first, last }
            from = last + 1
        end
    end
end

-- `text` with `marker` as the only one of ours; what others wrote stays byte for byte.
function M.merge(text, marker)
    if text == "" then return marker end
    local found = M.markers(text)
    if #found == 0 then return text .. ";" .. marker end
    local out, from = {}, 1
    for index, place in ipairs(found) do
        out[#out + 1] = string.sub(text, from, place[1] - 1)
        if index == 1 then out[#out + 1] = marker end
        from = place[2] + 1
    end
    return table.concat(out) .. string.sub(text, from)
end

-- The last readable marker: {class, asked, min_runtime, why, requeue}.
function M.parse_marker(text)
    local found = M.markers(M.text(text))
    for index = #found, 1, -1 do
        local ours = string.sub(text, found[index][1], found[index][2])
        if string.find(ours, "^sbudget:1:") then
            local given = {}
            for key, value in string.gmatch(ours, ":(%l+)=([%l%d-]*)") do given[key] = value end
            local seconds = string.find(given.m or "", "^%d+$") and tonumber(given.m)
            if seconds and M.CLASSES[given.c or ""] and M.CLASSES[given.a or ""]
                and string.find(given.w or "", "^%l[%l%d-]*$") then
                return { class = given.c, asked = given.a, min_runtime = seconds, why = given.w,
                    requeue = given.r ~= "0" }
            end
        end
    end
    return nil
end

M.CLASSES = { funded = true, preemptible = true }

----------------------------------------------------------------- messages to the user

function M.messages(job, lines)
    if not job.policy.messages then return {} end
    local out, bad = M.prefixed(lines), job.request.bad_declared
    if bad then out[#out + 1] = PREFIX .. M.say_bad_duration(bad) end
    if job.whole_nodes then out[#out + 1] = PREFIX .. M.say_whole_nodes(M.total(job.gpus)) end
    return out
end

function M.prefixed(lines)
    local out = {}
    for index = 1, #lines do out[index] = PREFIX .. lines[index] end
    return out
end

function M.tell(messages)
    if #messages > 0 then
        slurm.log_user("%s", messages[2] and table.concat(messages, "\n") or messages[1])
    end
end

function M.say_funded(job, room)
    if job.said == nil then
        local cut = job.cut and ", the longest there is (" .. M.spoken(job.cut) .. " asked)," or ""
        job.said = "funded; protected for " .. M.spoken(job.min_runtime) .. cut .. " from "
    end
    return job.said .. room.facts.label .. " (" .. M.gpu_hours(room.slack) .. " of "
        .. M.budget_of(room.facts) .. " GPU-hours left)."
end

function M.say_fast_lane(job, room)
    return "funded as a small job; protected for " .. M.spoken(job.min_runtime) .. " from "
        .. room.facts.label .. " (" .. M.gpu_hours(room.slack) .. " GPU-hours left for small jobs)."
end

function M.say_asked()
    return { "preemptible, as asked: free, on idle GPUs; makes way for funded jobs." }
end

function M.say_default()
    return { "preemptible: free, on idle GPUs; makes way for funded jobs;"
        .. " to be protected, add --qos=funded and --time-min." }
end

function M.say_no_gpus()
    return "not funded, because the job asks for no GPU and budgets are of GPUs."
end

function M.say_no_account(account)
    if account == nil then
        return { "preemptible, because the job names no account and you have no default one." }
    end
    return { "preemptible, because account " .. string.sub(M.quoted(account), 2, -2)
        .. " has no GPU budget; its managers can ask for one." }
end

function M.say_wrong_type(account)
    return { "preemptible, because " .. account.name .. "'s budget is for " .. account.gres .. " only." }
end

function M.say_unrequeueable(job)
    local what = job.request.batch and "a job that cannot be requeued" or "an interactive job"
    return {
        "preemptible, because " .. what .. " is funded only when its whole time limit ("
            .. M.spoken(job.limit) .. ") is protected, and " .. M.spoken(job.min_runtime) .. " would be.",
        "to be funded: a lower --time, or a --time-min as long (at most "
            .. M.spoken(job.policy.min_runtime_cap) .. ").",
    }
end

function M.say_blind()
    return {
        "preemptible for now, because the budgets cannot be read at the moment.",
        "it becomes funded while it waits, as soon as they can and allow it.",
    }
end

function M.say_exhausted(room)
    return {
        "preemptible for now: " .. M.out_of(room),
        "it may run on idle GPUs; while it waits, it becomes funded as soon as the budget allows.",
    }
end

function M.say_held(room)
    return {
        "held: " .. M.out_of(room),
        "it is released when the budget allows; `scontrol release` runs it preemptible at once.",
    }
end

function M.say_rejected(room)
    return { "rejected: " .. M.out_of(room), "with --qos=preemptible it would run on idle GPUs." }
end

function M.out_of(room)
    local at, back = room.facts.back_at, ""
    if at then back = "; more is back in " .. M.spoken(math.max(at - now, 0)) end
    return room.facts.label .. " has " .. M.gpu_hours(room.left) .. " of " .. M.budget_of(room.facts)
        .. " GPU-hours left, this job needs " .. M.gpu_hours(room.cost, true) .. back .. "."
end

function M.say_never(word, room)
    return {
        word .. ": its protection costs " .. M.gpu_hours(room.cost, true) .. " GPU-hours, more than "
            .. room.facts.label .. " of " .. M.budget_of(room.facts) .. "; it will never be funded so.",
        "to be funded: fewer GPUs, fewer array tasks at once (%), or a shorter --time-min.",
    }
end

function M.say_bad_duration(text)
    return "min-runtime=" .. M.quoted(text)
        .. " in --comment is no time (write 4h, 90min or 4:00:00); ignored."
end

function M.say_whole_nodes(gpus)
    return "whole nodes were asked for, so all their GPUs count: " .. M.grouped(gpus) .. "."
end

-- GPU-hours of GPU-milliseconds: `2,688`, `312.5`; below 10 to the hundredth, below one to the
-- thousandth; never below 0.
function M.gpu_hours(ms, up)
    local parts = ms >= 36000000 and 10 or ms >= 3600000 and 100 or 1000
    local unit = 3600000 / parts
    local part = ms % unit
    local count = (ms - part) / unit + (up and part > 0 and 1 or 0)
    if count < 0 then count = 0 end
    local rest = count % parts
    local whole = M.grouped((count - rest) / parts)
    if rest == 0 then return whole end
    while rest % 10 == 0 do rest, parts = rest / 10, parts / 10 end
    return string.format(M.DECIMALS[parts], whole, rest)
end

M.DECIMALS = { [10] = "%s.%d", [100] = "%s.%02d", [1000] = "%s.%03d" }

-- A budget in GPU-hours; made once, since it is said with every job.
function M.budget_of(facts)
    facts.said = facts.said or M.gpu_hours(facts.budget)
    return facts.said
end

function M.grouped(count)
    local text = ""
    while count >= 1000 do
        local last = count % 1000
        text, count = string.format(",%03d", last) .. text, (count - last) / 1000
    end
    return string.format("%d", count) .. text
end

-- Seconds in two units at most: `2 h 30 min`.
function M.spoken(seconds)
    if seconds == math.huge then return "unlimited" end
    local out = {}
    for _, unit in ipairs(M.SPOKEN) do
        if seconds >= unit[2] or (unit[1] == "s" and #out == 0) then
            out[#out + 1] = string.format("%d %s", M.div(seconds, unit[2]), unit[1])
            seconds = seconds % unit[2]
        end
    end
    return out[1] .. (out[2] and " " .. out[2] or "")
end

M.SPOKEN = { { "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 } }

-- A user's own words, cut, and without anything that a terminal would obey.
function M.quoted(text)
    return '"' .. string.gsub(string.sub(text, 1, 24), "[^\32-\126]", "?") .. '"'
end

----------------------------------------------------------------- the snapshot

-- What the sweep published: {kinds, policy, observed_at, accounts found so far, where the index
-- begins, its slots, all its text where it has no index}; nil when it cannot be read. As long as the
-- first line is the same, nothing else is read again.
function M.snapshot()
    if state.file then return state.facts end
    local file, reason = io.open(settings.snapshot, "rb")
    -- Open for this one call: what goes with an old snapshot is for the sweep to wait for.
    state.file = file
    if file and state.header and file:read(#state.header) == state.header then return state.facts end
    state.header, state.facts = nil, nil
    if file then
        local fine, facts, header = pcall(M.read_snapshot, file)
        if fine then
            state.header, state.facts = header, facts
            M.drop_promises(facts.observed_at)
            return facts
        end
        reason = settings.snapshot .. " " .. tostring(facts)
    end
    M.complain("no usable snapshot: " .. tostring(reason))
    return nil
end

function M.close_snapshot()
    if state.file then
        state.file:close()
        state.file = nil
    end
end

function M.read_snapshot(file)
    local chunk = M.chunk(file, 0, PAGE)
    local header = string.match(chunk, "^([^\n]*\n)")
    local head = M.split(header and string.sub(header, 1, -2) or "")
    if head[1] ~= "sbudget-snapshot" then error("is empty or no snapshot", 0) end
    if head[2] ~= "1" then error("is of another version", 0) end
    local size = M.whole(head[6])
    if file:seek("end") ~= size or not string.find(M.chunk(file, size - 24, 24), "\nend\t%d+\n$") then
        error("is cut off", 0)
    end
    local kinds = M.kinds(file, chunk, #header)
    return {
        observed_at = M.whole(head[3]), accounts = {}, kinds = kinds, policy = kinds.policy,
        base = #header, index = head[9] and M.whole(head[8]), slots = head[9] and M.whole(head[9]),
    }, header
end

-- {the settings, their lines, the requests that were seen under them and how many these are}. They
-- seldom change, and what a request means depends on nothing else of a snapshot; `chunk` is its
-- beginning, with `at` bytes of another line before them.
function M.kinds(file, chunk, at)
    local known = state.kinds
    local last = known and at + #known.text
    -- There is always a line behind them, and it must not be one more of them.
    if not known or last + 2 > #chunk or string.sub(chunk, at + 1, last) ~= known.text
        or string.find(chunk, "^[PWG]\t", last + 1) then
        local policy, text = M.policy(file, at)
        state.kinds = { policy = policy, text = text, jobs = {}, kept = 0 }
    end
    return state.kinds
end

-- `length` bytes from byte `at` on, counted from 0; fewer at the end of the file.
function M.chunk(file, at, length)
    file:seek("set", math.max(at, 0))
    return file:read(length) or ""
end

-- Neither too old, nor of a time that is yet to come.
function M.usable(facts)
    local age = now - facts.observed_at
    if age >= -CLOCK_SKEW and age <= facts.policy.max_age then return true end
    M.complain(string.format("no usable snapshot: %s is %d s old", settings.snapshot, age))
    return false
end

function M.plain_policy()
    return {
        default_class = "preemptible", min_runtime = 3600, min_runtime_cap = 28800,
        on_exhausted = "preemptible", messages = true, max_age = 900, fast_lane_gpu_time = 7200,
        weights = {}, node_gpus = 0, topology = false, preemptible_qos = "preemptible",
        partition_gpus = {}, has_partitions = false, job_requeue = true, operators = {},
        several_nodes = "",
    }
end

-- The settings, which are the lines from byte `at` on that begin with P, W or G; and their text.
function M.policy(file, at)
    local policy, length = M.plain_policy(), PAGE
    local chunk, from = M.chunk(file, at, length), 1
    while true do
        local kind, name, value, after = string.match(chunk, "^([PWG])\t([^\t\n]*)\t([^\n]*)\n()", from)
        if kind then
            M.set_policy(policy, kind, name, value)
            from = after
        elseif #chunk < length or string.find(chunk, "\n", from, true) then
            return policy, string.sub(chunk, 1, from - 1)
        else
            length = length * 2
            chunk = M.chunk(file, at, length)
        end
    end
end

function M.set_policy(policy, kind, name, value)
    if kind == "W" then
        policy.weights[name] = M.whole(value)
    elseif kind == "G" then
        policy.partition_gpus[name], policy.has_partitions = M.whole(value), true
    elseif name == "operators" then
        for uid in string.gmatch(value, "%d+") do policy.operators[tonumber(uid)] = true end
    elseif name == "default_class" then
        if M.CLASSES[value] then policy[name] = value end
    elseif name == "on_exhausted" then
        if value == "wait" or value == "reject" then policy[name] = value end
    elseif name == "preemptible_qos" or name == "several_nodes" then
        policy[name] = value
    elseif type(policy[name]) == "boolean" then
        policy[name] = M.whole(value) ~= 0
    elseif type(policy[name]) == "number" then
        policy[name] = M.whole(value)
    end
end

-- An account by its name, or by one that it had before.
function M.account(name)
    if name == nil then return nil end
    local account = M.account_by_name(name)
    if account == nil then
        local alias = M.line("L", name)
        account = alias and M.account_by_name(string.match(alias, "^L\t[^\t]*\t([^\t\n]*)"))
    end
    return account
end

function M.account_by_name(name)
    local known = state.facts.accounts
    if known[name] == nil then known[name] = M.account_in(M.line("A", name)) or false end
    return known[name] or nil
end

function M.account_in(line)
    if line == nil then return nil end
    local name, parent, qos, budget, balance, fast, back, gres, users = string.match(line,
        "^A\t([^\t]*)\t([^\t]*)\t([^\t]*)\t(%-?%d+)\t(%-?%d+)\t(%-?%d+)\t(%-?%d*)\t([^\t\n]*)\t?(%d*)")
    if name == nil then error("the snapshot has a bad line", 0) end
    return {
        key = name, name = name, label = name .. "'s budget", parent = parent ~= "" and parent or nil,
        qos = qos, budget = tonumber(budget), balance = tonumber(balance), fast = tonumber(fast),
        back_at = tonumber(back), gres = gres, users = users, of_user = {},
    }
end

-- The budget of a user in an account, nil where they have none of their own.
function M.user(account, user)
    local line = M.line("U", account.name, user)
    if line == nil then return nil end
    local budget, balance, fast, back = string.match(line,
        "^U\t[^\t]*\t[^\t]*\t(%-?%d+)\t(%-?%d+)\t(%-?%d+)\t(%-?%d*)")
    if budget == nil then error("the snapshot has a bad line", 0) end
    return {
        key = account.name .. "/" .. user, label = user .. "'s budget in " .. account.name,
        gres = account.gres, budget = tonumber(budget), balance = tonumber(balance),
        fast = tonumber(fast), back_at = tonumber(back),
    }
end

-- The line that begins so, nil where there is none: found by the index, or in the whole text of a
-- snapshot that has none (see core/snapshot_index.py; older sweeps knew of none).
function M.line(kind, name, user)
    if string.find(name, "[\t\n]") or user and string.find(user, "[\t\n]") then return nil end
    local facts, start = state.facts, kind .. "\t" .. name .. "\t"
    if user then start = start .. user .. "\t" end
    if facts.slots then return M.line_by_index(facts, start) end
    facts.text = facts.text or M.chunk(state.file, 0, state.file:seek("end"))
    local at = string.find(facts.text, "\n" .. start, 1, true)
    return at and string.match(facts.text, "^[^\n]*", at + 1)
end

function M.line_by_index(facts, start)
    local slot, mark = M.slot(start, facts.slots)
    local chain = M.chunk(state.file, facts.base + facts.index + slot * ENTRY, LONGEST_CHAIN * ENTRY)
    for offset, marked in string.gmatch(chain, "X\t(%d+)\t(%d+)\n") do
        if offset == "000000000" then return nil end
        if tonumber(marked) == mark then
            state.file:seek("set", facts.base + tonumber(offset))
            local line = state.file:read("*l")
            if line and string.sub(line, 1, #start) == start then return line end
        end
    end
    return nil
end

-- Where the search for a line that begins so starts in the index, and the mark of that line there.
function M.slot(start, slots)
    local hash = 0
    for at = 1, #start do hash = (hash * 256 + string.byte(start, at)) % PRIME end
    local slot = hash % slots
    return slot, (hash - slot) / slots % 1000
end

function M.split(line)
    local out = {}
    for field in string.gmatch(line .. "\t", "([^\t]*)\t") do out[#out + 1] = field end
    return out
end

function M.whole(text)
    if text == nil or not string.find(text, "^%-?%d+$") or #text > 20 then
        error("the snapshot has no number where one must be", 0)
    end
    return tonumber(text)
end

----------------------------------------------------------------- promises since the snapshot

-- A thousand submissions may come between two snapshots; they must not all spend the same hour.
-- Those of a second are kept as one, or a new snapshot would find thousands to look through.
function M.promise(promise)
    local made = state.made
    local last = made[#made]
    if last == nil or last[1] ~= now then
        last = { now, {} }
        made[#made + 1] = last
    end
    M.add_promise(last[2], promise)
    M.add_promise(state.sums, promise)
end

function M.add_promise(sums, promise)
    for name, cost in pairs(promise) do
        sums[name] = math.min((sums[name] or 0) + cost, MOST)
    end
end

-- A snapshot observed at `observed_at` knows of what was promised before; of the same second, not
-- for certain.
function M.drop_promises(observed_at)
    local made = state.made
    state.made, state.sums = {}, {}
    for _, item in ipairs(made) do
        if item[1] >= observed_at then
            state.made[#state.made + 1] = item
            M.add_promise(state.sums, item[2])
        end
    end
end

----------------------------------------------------------------- changes to jobs (scontrol update)

-- Slurm itself lets no user write AdminComment, nor this hook in a user's name: the marker of a job
-- that a user moves stays as it was, and the sweep sees by the QOS what they want.
function M.change(d, rec, _, uid)
    local qos, limit = M.lower(d.qos), M.number(d.time_limit)
    local requeue, time_min = M.number16(d.requeue), M.number(d.time_min)
    local account, comment, held = M.lower(d.account), d.admin_comment, M.number(d.priority) == 0
    local bigger = M.text(d.tres_per_job) ~= "" or M.text(d.tres_per_node) ~= ""
        or M.text(d.tres_per_task) ~= "" or M.text(d.tres_per_socket) ~= ""
        or M.count(d.min_nodes) or M.count(d.num_tasks)
    if qos == "" and account == "" and comment == nil
        and not (limit or requeue or time_min or bigger or held) then
        return slurm.SUCCESS
    end
    if M.is_trusted(uid) then return M.change_by_trusted(d, rec, uid, qos) end
    if comment ~= nil then
        return M.refuse(rec, uid, "AdminComment is not for users to write.", slurm.ESLURM_ACCESS_DENIED)
    end

    local marker = M.parse_marker(rec.admin_comment)
    local was_funded, leaves = M.is_funded(M.lower(rec.qos)), qos ~= "" and not M.is_funded(qos)
    local moves = M.is_funded(qos) and not was_funded or account ~= "" and account ~= M.lower(rec.account)
    -- Slurm would not tell it from our own, which the sweep lifts.
    if held and marker and marker.why == "wait" then
        return M.refuse(rec, uid, "a job that waits for its budget cannot be held by its user: it goes on"
            .. " when the budget allows; cancel it, or give it a later StartTime (scontrol update).")
    end
    if marker and time_min then
        return M.refuse(rec, uid, "the minimum runtime is fixed at submission; submit the job again.")
    end
    if leaves or not (was_funded or M.is_funded(qos)) then return slurm.SUCCESS end
    if bigger and M.grows(d, rec) then
        return M.refuse(rec, uid, "a funded job cannot get more GPUs; submit another.")
    end
    if moves or qos == "funded" or M.leaves_fast_lane(marker, limit, rec) then
        return M.move(d, rec, uid, marker)
    end
    if requeue == 0 or limit then return M.keep_requeueable(d, rec, uid, marker) end
    return slurm.SUCCESS
end

-- Into a funded QOS, where the budget allows it as it would at submission.
function M.move(d, rec, uid, marker)
    local array, task = M.count(rec.array_job_id), M.number(rec.array_task_id)
    if array and task == nil then
        return M.refuse(rec, uid, "an array gets its class at submission; submit it again.")
    end
    local request = M.request_of(d, rec, marker)
    if M.total(request.gpus) == 0 then
        return M.refuse(rec, uid, "the job asks for no GPU, and budgets are of GPUs.")
    end
    local verdict = M.decide(request)
    if verdict.class ~= "funded" then
        return M.refuse(rec, uid, "not funded: " .. (verdict.short or verdict.lines[1] or "not ours"))
    end
    -- Nothing is said: older Slurms log a message from here as an error.
    d.qos = verdict.changes.qos
    M.promise(verdict.promise)
    return slurm.SUCCESS
end

-- A request as M.read makes it, of a job that waits and what is to be changed of it.
function M.request_of(d, rec, marker)
    local limit = M.number(d.time_limit) or M.number(rec.time_limit)
    local requeue = M.number16(d.requeue) or M.number16(rec.requeue)
    local account = M.lower(d.account) ~= "" and M.lower(d.account) or M.lower(rec.account)
    local request = M.read(
        { qos = "funded", partition = rec.partition, user_id = d.user_id, user_name = d.user_name },
        { account = account, batch = M.text(rec.script) ~= "" })
    request.gpus = M.gpus_of_job(rec)
    request.time_limit = limit and limit * 60
    if marker and marker.min_runtime > 0 then request.declared = marker.min_runtime end
    if requeue then request.requeue = requeue ~= 0 end
    if marker and not marker.requeue and requeue ~= 1 then request.requeue = false end
    return request
end

function M.gpus_of_job(rec)
    local gpus = M.gpus(M.text(rec.gres_req))
    if next(gpus) then return gpus end
    return M.gpus_asked({
        tres_per_job = rec.tres_per_job, tres_per_node = rec.tres_per_node,
        tres_per_task = rec.tres_per_task, tres_per_socket = rec.tres_per_socket,
    }, M.count(rec.min_nodes) or 1, M.count(rec.num_tasks), nil)
end

function M.grows(d, rec)
    local function either(name) return M.text(d[name]) ~= "" and d[name] or rec[name] end
    local nodes = math.max(M.count(d.min_nodes) or M.count(rec.min_nodes) or 1, M.count(d.max_nodes) or 1)
    local wanted = M.gpus_asked({
        tres_per_job = either("tres_per_job"), tres_per_node = either("tres_per_node"),
        tres_per_task = either("tres_per_task"), tres_per_socket = either("tres_per_socket"),
    }, nodes, M.count(d.num_tasks) or M.count(rec.num_tasks), nil)
    return M.total(wanted) > M.total(M.gpus_of_job(rec))
end

-- What made it small was its time limit.
function M.leaves_fast_lane(marker, limit, rec)
    local old = M.number(rec.time_limit)
    return marker and marker.why == "fast" and limit and (old == nil or limit > old)
end

-- What cannot be requeued holds its GPUs for its whole time limit, so that must all be protected.
function M.keep_requeueable(d, rec, uid, marker)
    local request = M.request_of(d, rec, marker)
    local protected = marker and marker.min_runtime or 0
    local stays = request.batch and request.requeue ~= false
    if stays or (request.time_limit or math.huge) <= protected then return slurm.SUCCESS end
    return M.refuse(rec, uid, "a funded job that cannot be requeued may not have a time limit above its"
        .. " minimum runtime of " .. M.spoken(protected) .. ".")
end

-- Root, operators and the sweep know what they do. Their `funded` means the account's own QOS.
function M.change_by_trusted(d, rec, uid, qos)
    if qos == "funded" then
        local name = M.lower(d.account) ~= "" and M.lower(d.account) or M.lower(rec.account)
        local account = M.snapshot() and M.account(name)
        d.qos = account and account.qos ~= "" and account.qos or rec.qos
    end
    -- The sweep always writes its marker; that would be a line for each job it moves.
    if M.parse_marker(d.admin_comment) == nil and (qos ~= "" or d.admin_comment ~= nil) then
        M.log(string.format("uid %d changes job %d: qos=%s", uid, M.number(rec.job_id) or 0,
            d.qos or "unchanged"))
    end
    return slurm.SUCCESS
end

function M.is_trusted(uid)
    if uid == 0 or uid == M.own_uid() then return true end
    for _, trusted in ipairs(settings.trusted_uids or {}) do
        if uid == trusted then return true end
    end
    local facts = M.snapshot()
    return facts ~= nil and facts.policy.operators[uid] == true
end

-- The user that slurmctld runs as, which is SlurmUser.
function M.own_uid()
    if state.own_uid == nil then
        state.own_uid = -1
        local file = io.open("/proc/self/status", "r")
        if file then
            local uid = string.match(file:read(4096) or "", "\nUid:%s*(%d+)")
            file:close()
            state.own_uid = tonumber(uid) or -1
        end
    end
    return state.own_uid
end

function M.refuse(rec, uid, text, code)
    M.tell({ "sbudget: " .. text })
    M.log(string.format("refused uid %d a change of job %d: %s", uid, M.number(rec.job_id) or 0, text))
    return code or M.refusal()
end

-- "Job violates accounting/QOS policy" where Slurm lends us that code.
function M.refusal()
    return slurm.ESLURM_ACCOUNTING_POLICY or slurm.ERROR
end

----------------------------------------------------------------- the helper program

-- What the program needs of job_desc. A script may be long, so only whether there is one.
M.FIELDS = {
    "qos", "comment", "admin_comment", "partition", "array_inx", "user_name", "req_nodes",
    "tres_per_job", "tres_per_node", "tres_per_task", "tres_per_socket", "cpus_per_tres",
    "mem_per_tres", "min_nodes", "max_nodes", "num_tasks", "ntasks_per_node", "ntasks_per_tres",
    "ntasks_per_gpu", "sockets_per_node", "shared", "time_limit", "time_min", "requeue", "priority",
    "req_switch",
}

-- Nothing that a user wrote gets on the command line: the request goes through a file of mode 0600.
function M.ask_program(job_desc, more)
    M.snapshot() -- a new one drops the promises that it knows of
    local fields = {}
    for _, name in ipairs(M.FIELDS) do fields[name] = job_desc[name] end
    for name, value in pairs(more) do fields[name] = value end
    local body = M.json({ job_desc = fields, promised = state.sums, now = now })
    local name = os.tmpname()
    local file = assert(io.open(name, "wb"))
    file:write(body)
    file:close()
    local command = string.format("exec timeout -s KILL %d %s %s %s < %s 2>/dev/null",
        settings.helper_seconds or 2, M.shell(settings.program), M.shell(settings.snapshot),
        M.shell(settings.fallback), M.shell(name))
    local fine, answer = pcall(function()
        local pipe = assert(io.popen(command, "r"))
        local text = pipe:read("*a")
        pipe:close()
        return text
    end)
    os.remove(name)
    if not fine then error(answer, 0) end
    if answer == "" then error(settings.program .. " gave no answer in time", 0) end
    local verdict = M.from_json(answer)
    verdict.reject = verdict.verdict == "rejected"
    return verdict
end

function M.shell(text)
    return "'" .. string.gsub(text, "'", "'\\''") .. "'"
end

function M.json(value)
    if type(value) == "string" then
        return '"' .. string.gsub(value, '[%c"\\]', function(char)
            return string.format("\\u%04x", string.byte(char))
        end) .. '"'
    elseif type(value) == "number" then
        return string.format("%.17g", value)
    elseif type(value) == "table" then
        local out = {}
        for name, item in pairs(value) do out[#out + 1] = M.json(name) .. ":" .. M.json(item) end
        return "{" .. table.concat(out, ",") .. "}"
    end
    return tostring(value)
end

-- Reads what sbudget-admit writes: objects, arrays, texts, numbers, true, false, null.
function M.from_json(text)
    local at = 1
    local value
    local function skip(pattern)
        local _, last = string.find(text, "^%s*" .. pattern, at)
        if last then at = last + 1 end
        return last ~= nil
    end
    local function need(pattern)
        if not skip(pattern) then error("an answer that is no JSON", 0) end
    end
    local function string_()
        local out = {}
        while true do
            local plain, mark, after = string.match(text, '^([^"\\]*)(["\\])()', at)
            if plain == nil then error("an answer that is no JSON", 0) end
            out[#out + 1], at = plain, after
            if mark == '"' then return table.concat(out) end
            local char = string.sub(text, at, at)
            if char == "u" then
                out[#out + 1] = M.utf8(tonumber(string.sub(text, at + 1, at + 4), 16))
                at = at + 5
            else
                out[#out + 1] = M.ESCAPED[char] or char
                at = at + 1
            end
        end
    end
    local function list(close, each)
        if skip(close) then return end
        repeat each() until not skip(",")
        need(close)
    end
    function value()
        if skip("{") then
            local out = {}
            list("}", function()
                need('"')
                local name = string_()
                need(":")
                out[name] = value()
            end)
            return out
        elseif skip("%[") then
            local out = {}
            list("%]", function() out[#out + 1] = value() end)
            return out
        elseif skip('"') then
            return string_()
        end
        local word = string.match(text, "^%s*([%w.+-]+)", at)
        need("[%w.+-]+")
        if word == "true" then return true end
        if word == "false" then return false end
        if word == "null" then return nil end
        return tonumber(word) or error("an answer that is no JSON", 0)
    end
    return value()
end

M.ESCAPED = { n = "\n", t = "\t", r = "\r", b = "\b", f = "\f" }

-- Bytes of a code point; Python hands bytes that were no UTF-8 as U+DC80 to U+DCFF, and characters
-- beyond U+FFFF as two halves, which become two wrong ones in a text that nobody acts on.
function M.utf8(code)
    if code >= 56448 and code <= 56575 then return string.char(code - 56320) end
    if code < 128 then return string.char(code) end
    local low = 128 + code % 64
    if code < 2048 then return string.char(192 + M.div(code, 64), low) end
    return string.char(224 + M.div(code, 4096), 128 + M.div(code, 64) % 64, low)
end

----------------------------------------------------------------- small things

-- Trouble repeats with every job, so it is logged once a minute.
function M.complain(text)
    if state.complained and now - state.complained < QUIET and now >= state.complained then
        state.kept_quiet = state.kept_quiet + 1
        return
    end
    local more = state.kept_quiet > 0 and string.format(" (and %d times before)", state.kept_quiet) or ""
    state.complained, state.kept_quiet = now, 0
    slurm.log_error("%s", "sbudget: " .. text .. more)
end

-- What a job or a user is called must not end the line and begin one of its own.
function M.log(text)
    slurm.log_info("%s", "sbudget: " .. (string.gsub(text, "%c", "?")))
end

-- Whole division that rounds down, for whole numbers up to 2^53.
function M.div(a, b)
    return math.floor((a - a % b) / b)
end

function M.trim(text)
    return (string.gsub(string.gsub(text, "^%s+", ""), "%s+$", ""))
end

return function(given)
    settings = given
    return M
end
