package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// These curves compare examples/webserver with nginx, Apache and package net/http, as in figure 19 of Li and Zdancewic (2007). The client
// wrk requests random files of 16 KB. Client and server run on the same machine, so the client's processor time affects each server.

// webFigures holds the figures of one server in one round.
type webFigures struct {
	rate      float64 // answers per second
	p99       float64 // milliseconds
	processor float64 // microseconds of the server's processor time per answer
	memory    float64 // megabytes of the server's memory at the end
}

// A web is a workload for the web servers: requests for cached files, or requests for files on a disk.
type web struct {
	files int
	limit int    // bytes of memory, including the page cache; 0 means no limit
	aio   string // a setting of nginx; threads are faster for the disk, but slower for cached files
	dir   string
	had   map[string][]webFigures // the figures of all rounds, by server and number of connections
}

const (
	webPage  = 16 << 10
	perDir   = 512
	webLimit = 256 << 20
)

var (
	webCached = &web{files: 1000, had: map[string][]webFigures{}}
	webDisk   = &web{files: 131_072, limit: webLimit, aio: "aio threads;", had: map[string][]webFigures{}}
)

// webServers lists the servers in the order of the series.
var webServers = []struct {
	name, needs string
	command     func(dir, files, aio string, port int) []string
}{
	{"webserver", "go", func(_, files, _ string, port int) []string {
		return []string{webserverProgram(), "-loops", strconv.Itoa(runtime.NumCPU()), "-cache", "60", "-direct", "-dir", files, "-addr",
			fmt.Sprint("127.0.0.1:", port)}
	}},
	{"nginx", "nginx", func(dir, files, aio string, port int) []string {
		return []string{"nginx", "-p", dir, "-e", "stderr", "-c", write(dir, "nginx.conf", fmt.Sprintf(nginxConf, aio, port, files))}
	}},
	{"Apache", "apache2", func(dir, files, _ string, port int) []string {
		return []string{"apache2", "-D", "FOREGROUND", "-d", dir, "-f", write(dir, "apache.conf", fmt.Sprintf(apacheConf, port, files))}
	}},
	{"net/http FileServer", "go", func(_, files, _ string, port int) []string {
		return []string{must(os.Executable()), fileServerArg, files, fmt.Sprint("127.0.0.1:", port)}
	}},
}

// The settings follow the servers' documentation for static files: one worker per processor for nginx, and the event module for Apache.
// Braid's server has a reactor for each processor and 60 MB for its cache, and its reads bypass the system's cache.
const (
	nginxConf = `user root; daemon off; worker_processes auto; worker_rlimit_nofile 20000; pid nginx.pid; error_log stderr crit;
events { worker_connections 8192; multi_accept on; }
http { access_log off; sendfile on; tcp_nopush on; %s keepalive_requests 1000000000; default_type application/octet-stream;
 open_file_cache max=10000 inactive=60s;
 client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
 server { listen 127.0.0.1:%d backlog=8192 reuseport; root %s; } }
`
	apacheConf = `ServerName x
Listen 127.0.0.1:%d
PidFile apache.pid
ErrorLog /dev/null
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
DocumentRoot %s
<Directory />
Require all granted
</Directory>
KeepAlive On
MaxKeepAliveRequests 0
ServerLimit 80
ThreadsPerChild 64
ThreadLimit 64
MaxRequestWorkers 5120
StartServers 2
ListenBacklog 8192
`
	// wrkScript requests random files and prints a wrkReport. The environment variable FILES is the number of files.
	wrkScript = `local files, per = tonumber(os.getenv("FILES")), tonumber(os.getenv("PER"))
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
`
)

// webCurves returns the curves for a workload, one curve for each field of webFigures.
func webCurves(id, title, about string, load *web) (all []curve) {
	for _, f := range []struct {
		id, y string
		of    func(webFigures) float64
	}{
		{id, "answers a second", func(f webFigures) float64 { return f.rate }},
		{id + "-p99", "p99 in ms", func(f webFigures) float64 { return f.p99 }},
		{id + "-processor", "processor time of the server for an answer, µs", func(f webFigures) float64 { return f.processor }},
		{id + "-memory", "memory of the server, MB", func(f webFigures) float64 { return f.memory }},
	} {
		c := curve{id: f.id, title: title, about: about, x: axis{label: "connections", log: true}, y: axis{label: f.y}, rounds: 3, cold: true,
			points: []float64{16, 64, 256, 1024, 4096}, tiny: []float64{2}}
		for _, s := range webServers {
			c.series = append(c.series, s.name)
		}
		c.open = func(b *bench, x float64) (sides []measurement) {
			for i, s := range webServers {
				if _, err := exec.LookPath(s.needs); err != nil {
					b.note(s.needs + " is not installed: left out.")
					sides = append(sides, nil)
					continue
				}
				round := 0
				sides = append(sides, func() float64 {
					round++
					return f.of(load.figures(b, i, int(x), round))
				})
			}
			if _, err := exec.LookPath("wrk"); err != nil {
				b.note("wrk is not installed.")
				return make([]measurement, len(webServers))
			}
			return sides
		}
		all = append(all, c)
	}
	return all
}

// figures returns the figures of a round. It stores the figures, so that all curves for the workload share one measurement.
func (w *web) figures(b *bench, server, conns, round int) webFigures {
	key := fmt.Sprint(server, " ", conns)
	for len(w.had[key]) < round {
		w.had[key] = append(w.had[key], w.measure(b, server, conns))
	}
	return w.had[key][round-1]
}

// measure starts a server, measures it with wrk, and kills it.
func (w *web) measure(b *bench, server, conns int) webFigures {
	dir := must(os.MkdirTemp("", "bench-web"))
	defer os.RemoveAll(dir)
	n := b.of(w.files, 10)
	files, port := w.corpus(n), freePort()
	var groups []string
	if w.limit > 0 && !b.Tiny {
		groups = []string{limitedGroup(w.limit)}
		if os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0) != nil {
			ok(errors.New("dropping the cache of the system is not permitted here"))
		}
	}
	cmd := exec.Command("sh", append([]string{"-c", `for g in ` + strings.Join(groups, " ") + `; do echo $$ >$g/cgroup.procs; done; exec "$@"`, "sh"},
		webServers[server].command(dir, files, w.aio, port)...)...)
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, ownGroup
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=200MiB", "GOGC=off") // recommended by the Go GC guide for limited memory
	ok(cmd.Start())
	defer func() {
		killGroup(cmd.Process.Pid)
		_ = cmd.Wait()
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			c.Close()
			break
		} else if time.Now().After(deadline) {
			ok(err)
		}
	}
	d := time.Duration(b.of(int(4*time.Second), int(time.Second)))
	wrk(dir, port, conns, n, d/4)
	before := processorTime(cmd.Process.Pid)
	got := wrk(dir, port, conns, n, d)
	used, answers := processorTime(cmd.Process.Pid)-before, got.Requests-got.Refused
	if got.Failed > 0 || answers <= 0 {
		b.note(fmt.Sprintf("%s, %d connections: %.0f requests had no answer.", webServers[server].name, conns, got.Failed))
	}
	if got.Refused > 0 {
		b.note(fmt.Sprintf("%s, %d connections: %.0f of %.0f requests were refused, and do not count.", webServers[server].name, conns, got.Refused, got.Requests))
	}
	return webFigures{
		rate: answers / got.Microseconds * 1e6, p99: got.P99 / 1e3,
		processor: float64(used) / 1e3 / answers, memory: memoryOf(cmd.Process.Pid) / 1e6,
	}
}

func freePort() int {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

type wrkReport struct{ Requests, Microseconds, P99, Refused, Failed float64 }

func wrk(dir string, port, conns, files int, d time.Duration) (r wrkReport) {
	script := write(dir, "wrk.lua", wrkScript)
	cmd := exec.Command("wrk", "-t", strconv.Itoa(min(2, conns)), "-c", strconv.Itoa(conns), "-d", fmt.Sprint(max(1, int(d.Seconds())), "s"),
		"--timeout", "10s", "-s", script, fmt.Sprint("http://127.0.0.1:", port, "/0/0"))
	cmd.Env, cmd.Stderr = append(os.Environ(), fmt.Sprint("FILES=", files), fmt.Sprint("PER=", perDir)), os.Stderr
	out := string(must(cmd.Output()))
	if err := json.Unmarshal([]byte(out[strings.LastIndexByte(out[:max(0, len(out)-1)], '\n')+1:]), &r); err != nil {
		ok(fmt.Errorf("%w in what wrk printed: %s", err, out))
	}
	return r
}

// corpus returns a directory with n files of 16 KB, in subdirectories of 512 files. The directory is created once.
func (w *web) corpus(n int) string {
	if w.dir != "" {
		return w.dir
	}
	w.dir = leftover(must(os.MkdirTemp("", "bench-files")))
	data, rng := make([]byte, webPage), rand.NewChaCha8([32]byte{})
	for i := range n {
		name := filepath.Join(w.dir, strconv.Itoa(i/perDir), strconv.Itoa(i%perDir))
		if i%perDir == 0 {
			ok(os.Mkdir(filepath.Dir(name), 0o755))
		}
		_, _ = rng.Read(data)
		ok(os.WriteFile(name, data, 0o644))
	}
	flush()
	return w.dir
}

// webserverProgram builds examples/webserver, and returns the path of the program.
var webserverProgram = sync.OnceValue(func() string {
	dir := leftover(must(os.MkdirTemp("", "bench-bin")))
	build := exec.Command("go", "build", "-C", filepath.FromSlash("../examples/webserver"), "-o", dir, ".")
	build.Stderr = os.Stderr
	ok(build.Run())
	return filepath.Join(dir, "webserver")
})

// fileServerArg is the argument that starts this program as a net/http file server.
const fileServerArg = "-fileserver"

func fileServerHere(args []string) any {
	return http.ListenAndServe(args[1], http.FileServer(http.Dir(args[0])))
}

func write(dir, name, text string) string {
	name = filepath.Join(dir, name)
	ok(os.WriteFile(name, []byte(text), 0o644))
	return name
}
