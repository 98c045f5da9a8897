"""Load by wrk: keyed POST requests over keep-alive connections, and how they ended.

Every request carries its key twice, in a header and in a field of its body, so that all ways get the same load.
"""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

KEYS = 64
KEY_HEADER = "x-tenant-id"
KEY_FIELD = "prompt_cache_key"

_SCRIPT = """
local requests = {}
local number = 0
init = function()
  for key = 0, %(keys)d - 1 do
    local name = "key-" .. key
    local head = '{"model": "tiny", "%(field)s": "' .. name .. '", "prompt": "'
    local body = head .. string.rep("x", %(bytes)d - #head - 2) .. '"}'
    local headers = {["content-type"] = "application/json", ["%(header)s"] = name}
    requests[key] = wrk.format("POST", "/v1/completions", headers, body)
  end
end
request = function()
  number = number + 1
  return requests[number %% %(keys)d]
end
%(delay)s
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('\\n{"requests": %%d, "seconds": %%f, "failed": %%d, "p50": %%f, "p95": %%f}\\n',
    summary.requests, summary.duration / 1e6, failed, latency:percentile(50) / 1e3, latency:percentile(95) / 1e3))
end
"""


@dataclass(frozen=True)
class Load:
    """What to send.

    Attributes:
        body_bytes: of every request.
        connections: each sends its next request when the last is answered.
        seconds: of the run.
        pause_milliseconds: of each connection before every request.
    """

    body_bytes: int
    connections: int = 16
    seconds: int = 2
    pause_milliseconds: int = 0


@dataclass(frozen=True)
class Answered:
    """How it went.

    Attributes:
        requests: answered.
        seconds: it took.
        failed: not answered, or with another status than 2xx and 3xx.
        p50: median latency, milliseconds.
        p95: its 95th percentile.
    """

    requests: int
    seconds: float
    failed: int
    p50: float
    p95: float


def run(url: str, load: Load) -> Answered:
    """Send it; wrk itself takes one thread."""
    delay = f"delay = function() return {load.pause_milliseconds} end" if load.pause_milliseconds else ""
    given = {"bytes": load.body_bytes, "keys": KEYS, "header": KEY_HEADER, "field": KEY_FIELD, "delay": delay}
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "load.lua"
        script.write_text(_SCRIPT % given)
        argv = ["wrk", "-t1", f"-c{load.connections}", f"-d{load.seconds}s", "-s", str(script), url]
        out = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=load.seconds + 30).stdout
    return Answered(**json.loads(out.strip().splitlines()[-1]))
