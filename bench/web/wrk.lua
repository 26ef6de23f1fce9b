-- The script requests random files, and prints a line of JSON.
local files, per = $NUMBER, $PER
local threads = 0
function setup(thread) threads = threads + 1; thread:set("id", threads) end
function init(args) math.randomseed(os.time() * 10 + id) end
function request()
  local i = math.random(0, files - 1)
  return "GET /" .. math.floor(i / per) .. "/" .. i % per .. " HTTP/1.1\r\nHost: x\r\n\r\n"
end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('\n{"Requests":%d,"Microseconds":%d,"P99":%d,"Refused":%d,"Failed":%d}\n', summary.requests, summary.duration,
    latency:percentile(99), e.status, e.connect + e.read + e.write + e.timeout))
end
