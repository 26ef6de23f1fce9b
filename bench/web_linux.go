package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// These curves compare examples/libraries/webserver with nginx, Apache and package net/http, as in figure 19 of Li and Zdancewic (2007). The client
// wrk requests random files of 16 KB. Client and server run on the same machine, so the client's processor time affects each server.

const (
	braid  = "exec $WEBSERVER -loops $PROCESSORS -cache 30 -direct -dir $FILES -addr $ADDRESS:$PORT"
	device = "(for i in $(seq 100); do ip address add 10.99.7.1/24 dev braidbench && break; sleep 0.05; done; " +
		"ip link set braidbench up txqueuelen 10000) 2>/dev/null & "
)

// webServers lists the servers in the order of the series. The shell starts a command with the variables of the method measure. The settings
// in the directory web follow the servers' documentation for static files: one worker per processor for nginx, and the event module for
// Apache. Braid's server has a reactor for each processor and 30 MB for its cache, and its reads bypass the system's cache. The clients of
// the last series connect through a TUN device, which the server makes. Packets in it count as its memory, so the series is not in web-disk.
var webServers = []webServer{
	{"webserver", "command -v go", "127.0.0.1", braid},
	{"nginx", "command -v nginx", "127.0.0.1", "exec nginx -p $DIR -e stderr -c $DIR/nginx.conf"},
	{"Apache", "command -v apache2", "127.0.0.1", "exec apache2 -D FOREGROUND -d $DIR -f $DIR/apache.conf"},
	{"net/http FileServer", "command -v go", "127.0.0.1", "exec $BENCH -fileserver $FILES 127.0.0.1:$PORT"},
	{"webserver -stack", "ip tuntap add braidprobe mode tun && ip link delete braidprobe", "10.99.7.2", device + braid + " -stack braidbench=10.99.7.2/24"},
}

//go:embed web
var webSettings embed.FS

// A webServer is started by the shell. The command needs succeeds if this machine has the server.
type webServer struct{ name, needs, address, command string }

func (w *web) servers() []webServer {
	if w.limit > 0 {
		return webServers[:len(webServers)-1]
	}
	return webServers
}

// webFigures holds the figures of one server in one round, in the order of webAxes. The memory is measured at the end.
type webFigures [4]float64

var webAxes = [4]struct{ suffix, label string }{
	{"", "answers a second"},
	{"-p99", "p99 in ms"},
	{"-processor", "processor time for an answer, µs"},
	{"-memory", "memory of the server, MB"},
}

// A web is a workload for the web servers.
type web struct {
	id, title, about string
	files            int
	limit            int    // bytes of memory, including the page cache; 0 means no limit
	aio              string // a setting of nginx; threads are faster for the disk, but slower for cached files
	dir              string
}

var webs = []*web{
	{id: "web-disk", title: "131,072 files of 16 KB, and memory for an eighth of them",
		about: "Static files at random, as in figure 19 of Li and Zdancewic (2007). Each server has 256 MB, the cache of the system for its files included, and begins with none.",
		files: 131_072, limit: 256 << 20, aio: "aio threads;"},
	{id: "web-cached", title: "1,000 files of 16 KB that are cached", about: "The same, from memory.", files: 1000},
}

const perDir = 512

// webRuns holds the figures of all rounds, by workload, server and number of connections. All curves for a workload share them.
var webRuns = map[string][]webFigures{}

// webCurves returns the curves for each workload, one curve for each field of webFigures.
func webCurves() (all []curve) {
	for _, w := range webs {
		for i, axis := range webAxes {
			c := curve{figure: figure{ID: w.id + axis.suffix, Title: w.title, About: w.about, X: "connections", LogX: true, Y: axis.label,
				Rounds: 3}, points: []float64{16, 64, 256, 1024, 4096}, tiny: []float64{2}, cold: true}
			for _, s := range w.servers() {
				c.series = append(c.series, s.name)
			}
			c.open = func(b *bench, x float64) []side { return w.sides(b, int(x), i) }
			all = append(all, c)
		}
	}
	return all
}

// sides returns a side for each server that is installed. The index chooses one of the figures.
func (w *web) sides(b *bench, conns, index int) []side {
	all := make([]side, len(w.servers()))
	if _, err := exec.LookPath("wrk"); err != nil {
		b.note("wrk is not installed.")
		return all
	}
	for server, s := range w.servers() {
		if exec.Command("sh", "-c", s.needs).Run() != nil {
			b.note(s.name + " is not installed or not permitted: left out.")
			continue
		}
		key, round := fmt.Sprint(w.id, " ", server, " ", conns), 0
		all[server] = func() float64 {
			if round++; len(webRuns[key]) < round {
				webRuns[key] = append(webRuns[key], w.measure(b, server, conns))
			}
			return webRuns[key][round-1][index]
		}
	}
	return all
}

// measure starts a server, measures it with wrk, and kills it.
func (w *web) measure(b *bench, server, conns int) webFigures {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	s, dir, n := webServers[server], scratch(), b.of(w.files, 10)
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	addr := s.address + ":" + port
	ln.Close()
	variables := withSettings(map[string]string{
		"ADDRESS": s.address, "PORT": port, "DIR": dir, "FILES": w.corpus(n), "NUMBER": strconv.Itoa(n), "PER": strconv.Itoa(perDir),
		"WEBSERVER": built("libraries/webserver"), "BENCH": must(os.Executable()), "PROCESSORS": strconv.Itoa(runtime.NumCPU()), "AIO": w.aio,
	})
	script := s.command
	if w.limit > 0 && !b.Tiny {
		// The page cache for the files counts against the limit of a control group.
		const limited = "/sys/fs/cgroup/memory/braid-bench"
		ok(os.MkdirAll(limited, 0o755))
		ok(os.WriteFile(limited+"/memory.limit_in_bytes", []byte(strconv.Itoa(w.limit)), 0))
		script = "echo $$ >" + limited + "/cgroup.procs; " + script
		ok(os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
	}
	var limits []string
	if w.limit > 0 {
		limits = []string{"GOMEMLIMIT=140MiB", "GOGC=off"} // as the Go GC guide advises; the rest is for inodes and directories
	}
	group, kill := startServer(script, addr, variables, limits...)
	defer kill()
	d := time.Duration(b.of(int(4*time.Second), int(time.Second)))
	wrk(dir, addr, conns, d/4)
	before, _ := usage(group)
	got := wrk(dir, addr, conns, d)
	after, memory := usage(group)
	answers := got.Requests - got.Refused
	about := fmt.Sprintf("%s, %d connections: ", s.name, conns)
	if got.Failed > 0 || answers <= 0 {
		b.note(about + fmt.Sprintf("%.0f requests had no answer.", got.Failed))
	}
	if got.Refused > 0 {
		b.note(about + fmt.Sprintf("%.0f of %.0f requests were refused, and do not count.", got.Refused, got.Requests))
	}
	return webFigures{answers / got.Microseconds * 1e6, got.P99 / 1e3, float64(after-before) / 1e3 / answers, memory / 1e6}
}

// withSettings writes the files of the directory web with the variables into the scratch directory, and returns the variables.
func withSettings(variables map[string]string) map[string]string {
	for _, f := range must(webSettings.ReadDir("web")) {
		text := os.Expand(string(must(webSettings.ReadFile("web/"+f.Name()))), func(name string) string { return variables[name] })
		ok(os.WriteFile(filepath.Join(variables["DIR"], f.Name()), []byte(text), 0o644))
	}
	return variables
}

// startServer starts a server by the shell, and returns when it accepts connections. The group has the server and its children.
func startServer(script, addr string, variables map[string]string, environment ...string) (group int, kill func()) {
	cmd := exec.Command("sh", "-c", script)
	cmd.Env, cmd.Stderr = append(os.Environ(), environment...), os.Stderr
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ok(cmd.Start())
	group = cmd.Process.Pid
	kill = func() {
		_ = syscall.Kill(-group, syscall.SIGKILL)
		_ = cmd.Wait()
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			c.Close()
			return group, kill
		} else if time.Now().After(deadline) {
			kill()
			ok(err)
		}
	}
}

func wrk(dir, addr string, conns int, d time.Duration) (r struct{ Requests, Microseconds, P99, Refused, Failed float64 }) {
	cmd := exec.Command("wrk", "-t", strconv.Itoa(min(max(2, runtime.NumCPU()/2), conns)), "-c", strconv.Itoa(conns), "-d", fmt.Sprint(max(1, int(d.Seconds())), "s"),
		"--timeout", "10s", "-s", filepath.Join(dir, "wrk.lua"), "http://"+addr+"/0/0")
	cmd.Stderr = os.Stderr
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
	w.dir = scratch()
	data, rng := make([]byte, 16<<10), rand.NewChaCha8([32]byte{})
	for i := range n {
		name := filepath.Join(w.dir, strconv.Itoa(i/perDir), strconv.Itoa(i%perDir))
		if i%perDir == 0 {
			ok(os.Mkdir(filepath.Dir(name), 0o755))
		}
		_, _ = rng.Read(data)
		ok(os.WriteFile(name, data, 0o644))
	}
	syscall.Sync()
	return w.dir
}

// usage returns the processor time of a group, including children that have ended, and its memory in bytes. Shared memory is counted once.
func usage(group int) (processor time.Duration, memory float64) {
	const tick = 10 * time.Millisecond
	for _, proc := range must(filepath.Glob("/proc/[0-9]*")) {
		text, err := os.ReadFile(proc + "/stat")
		_, rest, found := strings.Cut(string(text), ") ")
		stat := strings.Fields(rest)
		if err != nil || !found || stat[2] != strconv.Itoa(group) { // skips processes that have ended, and other groups
			continue
		}
		for _, s := range stat[11:15] { // the user and system times of the process and its children
			processor += time.Duration(must(strconv.Atoi(s))) * tick
		}
		kilobytes := 0.0
		_, _ = fmt.Sscanf(field(proc+"/smaps_rollup", "Pss"), "%f kB", &kilobytes)
		memory += kilobytes * 1024
	}
	return processor, memory
}
