"""Trying a Lua script as slurmctld would load it, in whatever Lua this machine has.

Slurm's plugin is linked to one version of Lua; that one is tried first. Nothing of Slurm is there,
so the script sees a table `slurm` that answers like slurmctld's and writes what is logged to us.
A site's script may open files of its own when it is loaded, hence it is tried as SlurmUser.
"""

import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_VERSIONS = ("5.1", "5.3", "5.4", "5.2")
_SECONDS = 20
_LUPA = """import importlib, sys
lua = importlib.import_module("lupa." + sys.argv[1]).LuaRuntime(encoding="latin-1")
lua.execute(sys.stdin.read(), *sys.argv[2:])
"""
_PROGRAM = r"""
local path, call = ...
local function out(kind, text)
    io.write(kind, ": ", (string.gsub(tostring(text), "\n", " ")), "\n")
end
local function stop(text) out("fault", text) io.flush() os.exit(1) end
local function log(...) out("log", string.format(...)) return 0 end
slurm = setmetatable({ SUCCESS = 0, ERROR = -1, FAILURE = -1, NO_VAL = 4294967294 }, {
    __index = function(_, name)
        if string.find(name, "^log_") or name == "user_msg" then return log end
        if string.find(name, "^ESLURM") then return 2050 end
    end,
})
local chunk, bad = loadfile(path)
if not chunk then stop(bad) end
local fine, code = pcall(chunk)
if not fine then stop(code) end
if code ~= nil and code ~= 0 then stop("it returned " .. tostring(code) .. " at load") end
for _, name in ipairs({ "slurm_job_submit", "slurm_job_modify" }) do
    if type(_G[name]) ~= "function" then stop("it has no function " .. name) end
end
if call == "call" then
    local job = { tres_per_job = "gres:gpu:1", qos = "funded", user_name = "root", script = "#!" }
    local fine, code = pcall(slurm_job_submit, job, {}, 0)
    if not fine or code ~= 0 then stop("a job is not accepted: " .. tostring(code)) end
    if job.qos == "funded" then stop("a job is left with the QOS funded") end
    fine, code = pcall(slurm_job_modify, { comment = "x" }, { job_id = 1, qos = "x" }, {}, 1000)
    if not fine or code ~= 0 then stop("a change is not accepted: " .. tostring(code)) end
end
out("done", _VERSION)
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """How a script fared. `fault` is empty when it went well; `log` is what it logged."""

    fault: str
    log: str


@dataclass(frozen=True, slots=True)
class Lua:
    """A Lua of this machine: `name` for people; `runs`: it can run a script, and not only check
    its syntax; `system`: any user can run it."""

    name: str
    argv: tuple[str, ...]
    runs: bool = True
    system: bool = True

    def load(self, script: Path, *, call: bool = False, uid: int = 0) -> Trial:
        """Load a script, and with `call` let it admit and change a job. Root does it as `uid`."""
        other = _account(uid) if os.geteuid() == 0 and self.system else None
        more = ["call" if call else ""] if self.runs else []
        try:
            done = subprocess.run(
                [*self.argv, str(script), *more],
                input=_PROGRAM.encode() if self.runs else b"",
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                user=other.pw_uid if other else None,
                group=other.pw_gid if other else None,
                extra_groups=[] if other else None,
            )
        except (OSError, subprocess.TimeoutExpired) as bad:
            return Trial(f"{self.name}: {bad}", "")
        out = done.stdout.decode(errors="replace").splitlines()
        log = "\n".join(line for line in out if line.startswith("log: "))
        faults = [line.removeprefix("fault: ") for line in out if line.startswith("fault: ")]
        if done.returncode == 0 and (not self.runs or any(s.startswith("done: ") for s in out)):
            return Trial("", log)
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return Trial((faults or said[-1:] or [f"exit {done.returncode}"])[0], log)


def _account(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid) if uid else None
    except KeyError:
        return None


def linked(plugin: Path) -> str:
    """The version of Lua that Slurm's plugin is linked to, such as 5.1; empty: unknown."""
    try:
        found = re.search(rb"liblua-?(5\.\d)", plugin.read_bytes())
    except OSError:
        return ""
    return found[1].decode() if found else ""


def find(first: str = "") -> Lua | None:
    """A Lua, best of version `first`: an interpreter, Python's lupa, or a compiler."""
    versions = sorted(_VERSIONS, key=lambda version: version != first)
    for version in (*versions, ""):
        program = shutil.which("lua" + version)
        if program:
            return Lua(program, (program, "-"))
    for version in versions if importlib.util.find_spec("lupa") else ():
        module = "lua" + version.replace(".", "")
        if importlib.util.find_spec(f"lupa.{module}"):
            argv = (sys.executable, "-c", _LUPA, module)
            return Lua(f"lupa's Lua {version}", argv, system=False)
    for version in (*versions, ""):
        compiler = shutil.which("luac" + version)
        if compiler:
            return Lua(compiler, (compiler, "-p"), runs=False)
    return None
