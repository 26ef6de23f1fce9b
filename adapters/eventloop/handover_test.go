package eventloop_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"golang.org/x/sync/errgroup"
)

var bg = context.Background()

// A task blocks natively for ever. 200 connections are served as if it did not exist.
func TestConnectionsGoOnBesideATaskThatWaitsNatively(t *testing.T) {
	const conns, after = 200, 10 * time.Millisecond
	var all []string
	covered := uint64(0)
	for range 8 {
		quiet, _ := echoesBeside(t, conns, func(<-chan struct{}) {})
		bound := 3*after + quiet // the machine may be busy
		longest, handOvers := echoesBeside(t, conns, func(stop <-chan struct{}) { <-stop })
		covered += handOvers // if the reactor was busy with the connections, it is careful, and there is no hand-over
		if all = append(all, longest.String()+" of "+bound.String()); longest < bound && covered > 0 {
			t.Log("the longest echo took", all)
			return
		}
	}
	t.Errorf("with %d hand-overs, the longest echo took %v", covered, all)
}

// echoesBeside returns the longest time of an echo over conns connections, while stuck runs in a task of their reactor.
func echoesBeside(t *testing.T, conns int, stuck func(stop <-chan struct{})) (longest time.Duration, handOvers uint64) {
	l := must(eventloop.New(eventloop.Options{StallAfter: -1}))
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	ctx, cancel := context.WithCancel(bg)
	served := make(chan error, 1)
	go func() { served <- ln.Serve(ctx, echo) }()
	clients := make([]net.Conn, conns)
	for i := range clients {
		clients[i] = must(net.Dial("tcp", ln.Addr().String()))
	}
	stop := make(chan struct{})
	must(0, l.Go(func() { stuck(stop) }))
	buf := make([]byte, 1)
	within(t, func() {
		for i := range 4 * conns {
			began := time.Now()
			c := clients[i%conns]
			must(c.Write([]byte{byte(i)}))
			must(io.ReadFull(c, buf))
			longest = max(longest, time.Since(began))
		}
	})
	close(stop)
	for _, c := range clients {
		c.Close()
	}
	cancel()
	<-served
	handOvers = l.Stats().HandOvers
	must(0, l.Close())
	return longest, handOvers
}

// Fifty tasks share a stock HTTP client with two connections, all on the reactor of their server. Each blocks natively until the
// others have ended.
func TestAStockHTTPClientWithAPool(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })}
	go server.Serve(ln)
	defer server.Close()
	transport := &http.Transport{
		DialContext:     func(ctx context.Context, network, addr string) (net.Conn, error) { return l.Dial(ctx, network, addr) },
		MaxConnsPerHost: 2,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var got atomic.Int32
	var tasks sync.WaitGroup
	for i := range 50 {
		tasks.Add(1)
		must(0, l.Go(func() {
			defer tasks.Done()
			for k := range 5 {
				want := fmt.Sprintf("/%d/%d", i, k)
				resp, err := client.Get("http://" + ln.Addr().String() + want)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || string(body) != want {
					t.Errorf("%q, %v", body, err)
				}
				got.Add(1)
			}
		}))
	}
	tasks.Wait()
	if got.Load() != 250 {
		t.Errorf("%d responses", got.Load())
	}
}

// Stock code runs in tasks of one reactor, and blocks natively until another task of this reactor has run.
func TestStockCodeThatWaitsForItsOwnReactor(t *testing.T) {
	for name, program := range map[string]func(t *testing.T, l *eventloop.Loop){
		"a sync.Mutex across a Sleep": func(t *testing.T, l *eventloop.Loop) {
			var mu sync.Mutex
			var n int
			var both sync.WaitGroup
			for range 2 {
				both.Add(1)
				must(0, l.Go(func() {
					defer both.Done()
					for range 5 {
						mu.Lock()
						before := n
						must(0, suspend.Sleep(bg, time.Millisecond))
						n = before + 1
						mu.Unlock()
					}
				}))
			}
			both.Wait()
			if n != 10 {
				t.Error(n)
			}
		},
		"errgroup.Wait": func(t *testing.T, l *eventloop.Loop) {
			done := make(chan error, 1)
			must(0, l.Go(func() {
				var g errgroup.Group
				var woken sync.WaitGroup
				woken.Add(3)
				for range 3 {
					g.Go(func() error { return l.Go(func() { _ = suspend.Sleep(bg, time.Millisecond); woken.Done() }) })
				}
				err := g.Wait()
				woken.Wait()
				done <- err
			}))
			must(0, <-done)
		},
		"database/sql, 20 tasks and two connections": func(t *testing.T, l *eventloop.Loop) {
			db := sql.OpenDB(sleepy{})
			defer db.Close()
			db.SetMaxOpenConns(2)
			var all sync.WaitGroup
			for range 20 {
				all.Add(1)
				must(0, l.Go(func() {
					defer all.Done()
					for range 5 {
						if n, err := must(db.ExecContext(bg, "")).RowsAffected(); n != 1 || err != nil {
							t.Error(n, err)
						}
					}
				}))
			}
			all.Wait()
		},
		"two tasks that write to one tls.Conn": func(t *testing.T, l *eventloop.Loop) {
			server := httptest.NewUnstartedServer(nil)
			server.StartTLS() // creates its certificate
			defer server.Close()
			ln := tls.NewListener(must(l.Listen("tcp", "127.0.0.1:0")), server.TLS)
			const each, size = 20, 100_000
			got := make(chan int64, 1)
			go func() {
				c := must(ln.Accept())
				defer c.Close()
				n, _ := io.Copy(io.Discard, c)
				got <- n
			}()
			c := tls.Client(must(l.Dial(bg, "tcp", ln.Addr().String())), &tls.Config{InsecureSkipVerify: true})
			var both sync.WaitGroup
			for range 2 {
				both.Add(1)
				must(0, l.Go(func() {
					defer both.Done()
					for range each {
						must(c.Write(make([]byte, size)))
					}
				}))
			}
			both.Wait()
			must(0, c.Close())
			if n := <-got; n != 2*each*size {
				t.Error(n)
			}
			ln.Close()
		},
		"native channels, both ways": func(t *testing.T, l *eventloop.Loop) {
			ping, pong := make(chan int), make(chan int)
			done := make(chan int, 1)
			must(0, l.Go(func() {
				sum := 0
				for i := range 20 {
					ping <- i
					sum += <-pong
				}
				close(ping)
				done <- sum
			}))
			must(0, l.Go(func() {
				for i := range ping {
					pong <- i
					suspend.Yield()
				}
			}))
			if sum := <-done; sum != 190 {
				t.Error(sum)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			program(t, open(t, eventloop.Options{StallAfter: -1}))
		})
	}
}

// A sleepy driver has connections that suspend, as connections over a Conn do.
type sleepy struct{}

func (d sleepy) Connect(context.Context) (driver.Conn, error) { return d, d.Sleep() }
func (d sleepy) Driver() driver.Driver                        { return nil }
func (d sleepy) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (d sleepy) Begin() (driver.Tx, error)                    { return nil, driver.ErrSkip }
func (d sleepy) Close() error                                 { return nil }
func (d sleepy) Sleep() error                                 { return suspend.Sleep(bg, 100*time.Microsecond) }

func (d sleepy) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), d.Sleep()
}

// Without hand-overs, no two tasks of a reactor run at a time, and a task that blocks natively delays the others.
func TestHandOverIsNever(t *testing.T) {
	reported := make(chan struct{}, 100)
	l := open(t, eventloop.Options{HandOver: -1, StallAfter: 20 * time.Millisecond, OnStall: func([]byte) { reported <- struct{}{} }})
	var second atomic.Bool
	release := make(chan struct{})
	must(0, l.Go(func() { <-release }))
	must(0, l.Go(func() { second.Store(true) }))
	within(t, func() { <-reported })
	if second.Load() || l.Stats().HandOvers != 0 {
		t.Error("a second task has run")
	}
	close(release)
	schedtest.Eventually(t, "the second runs", second.Load)
}

func TestStatsOfAHandOver(t *testing.T) {
	l := open(t, eventloop.Options{HandOver: time.Millisecond, StallAfter: -1})
	release := make(chan struct{})
	must(0, l.Go(func() { <-release }))
	schedtest.Eventually(t, "the task is outside", func() bool { return l.Stats().Outside == 1 })
	if s := l.Stats(); s.Live != 1 || s.Running != 1 || s.Suspended != 0 || s.HandOvers != 1 {
		t.Errorf("%+v", s)
	}
	close(release)
	schedtest.Eventually(t, "none is live", func() bool { return l.Stats().Live == 0 })
	if s := l.Stats(); s.Outside != 0 || s.Running != 0 {
		t.Errorf("%+v", s)
	}
}

// Close waits for the OnPanic of a callback, even if the callback runs outside.
func TestCloseWaitsForACallbackThatIsOutside(t *testing.T) {
	told, release := make(chan struct{}), make(chan struct{})
	l := must(eventloop.New(eventloop.Options{HandOver: time.Millisecond, StallAfter: -1, OnPanic: func(any, []byte) {
		close(told)
		<-release
	}}))
	must(0, l.Execute(func() { panic("on purpose") }))
	<-told
	schedtest.Eventually(t, "the callback is outside", func() bool { return l.Stats().Outside == 1 })
	closed := make(chan struct{})
	go func() { must(0, l.Close()); close(closed) }()
	select {
	case <-closed:
		t.Error("Close has returned")
	case <-time.After(20 * time.Millisecond): // too short a time can only hide a mistake
	}
	close(release)
	within(t, func() { <-closed })
	if n := l.Stats().Outside; n != 0 {
		t.Errorf("%d are outside", n)
	}
}

// Tasks that are stuck at one line of code are reported once. A task that is stuck at another line gets its own report.
func TestALineThatIsStuckIsReportedOnce(t *testing.T) {
	reports := make(chan string, 100)
	l := open(t, eventloop.Options{HandOver: time.Millisecond, StallAfter: 30 * time.Millisecond, OnStall: func(s []byte) {
		if !strings.HasPrefix(string(s), "still") {
			reports <- string(s)
		}
	}})
	release := make(chan struct{})
	for range 5 {
		must(0, l.Go(func() { stuckHere(release) }))
	}
	within(t, func() {
		if s := <-reports; !strings.Contains(s, "stuckHere") || !strings.Contains(s, "suspend.Blocking") || !strings.Contains(s, "handover_test.go:") {
			t.Error(s)
		}
	})
	must(0, l.Go(func() { stuckThere(release) }))
	within(t, func() {
		if s := <-reports; !strings.Contains(s, "stuckThere") {
			t.Error(s)
		}
	})
	close(release)
	schedtest.Eventually(t, "none is live", func() bool { return l.Stats().Live == 0 })
	if len(reports) > 0 {
		t.Error(<-reports)
	}
}

func stuckHere(release <-chan struct{})  { <-release }
func stuckThere(release <-chan struct{}) { <-release }

// Fifty tasks block natively again and again. If the reactor were not careful, each would delay it until the end of HandOver.
func TestConnectionsGoOnBesideTasksThatWaitNativelyAgainAndAgain(t *testing.T) {
	const conns, tasks, after = 100, 50, 10 * time.Millisecond
	bound := 3 * after
	var all []string
	for range 8 { // repeats, because the machine may be busy
		var rounds atomic.Int64
		longest, _ := echoesBeside(t, conns, func(stop <-chan struct{}) {
			for range tasks {
				must(0, suspend.Here().Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(20 * time.Millisecond):
							rounds.Add(1)
							suspend.Yield()
						}
					}
				}))
			}
		})
		if rounds.Load() == 0 {
			t.Fatal("uncovered: no native wait")
		}
		if all = append(all, longest.String()); longest < bound {
			t.Log("the longest echo took", all)
			return
		}
	}
	t.Errorf("the longest echo took %v", all)
}

// Fifty new tasks each block natively once, for less than HandOver. Together they would delay the reactor for 25 times as long.
func TestTasksThatWaitNativelyInARow(t *testing.T) {
	const tasks, after = 50, 100 * time.Millisecond
	const nap = after / 2
	l := open(t, eventloop.Options{HandOver: after, StallAfter: -1})
	var all []string
	for range 8 { // repeats, because the machine may be busy
		var naps sync.WaitGroup
		over := make(chan struct{})
		longest := make(chan time.Duration)
		must(0, l.Go(func() {
			most, last := time.Duration(0), time.Now()
			for running := true; running; {
				suspend.Yield()
				now := time.Now()
				most, last = max(most, now.Sub(last)), now
				select {
				case <-over:
					running = false
				default:
				}
			}
			longest <- most
		}))
		for range tasks {
			naps.Add(1)
			must(0, l.Go(func() { defer naps.Done(); time.Sleep(nap) }))
		}
		within(t, naps.Wait)
		close(over)
		most := <-longest
		if all = append(all, most.String()); most < tasks*nap/4 {
			t.Log("the longest turn took", all)
			return
		}
		schedtest.Eventually(t, "none is outside", func() bool { return l.Stats().Outside == 0 })
	}
	t.Errorf("the longest turn took %v", all)
}

// Callbacks of one reactor do not run in parallel, unless one of them is stuck. A machine that is busy enough stops a callback for longer
// than HandOver, and the loop is right to count it as stuck. Then the test tries again and waits longer.
func TestCallbacksFollowEachOther(t *testing.T) {
	for handOver := 100 * time.Millisecond; ; handOver *= 3 {
		together, handOvers := callbacksBesideAStuckOne(t, handOver)
		if handOvers == 1 {
			require.Zero(t, together, "callbacks that ran in parallel")
			return
		}
		require.Less(t, handOver, 10*time.Second, "%d callbacks were stuck", handOvers)
	}
}

// callbacksBesideAStuckOne starts a callback that is stuck, and 200 others. It returns how many of the others ran in parallel with another
// one, and how many callbacks the loop counted as stuck.
func callbacksBesideAStuckOne(t *testing.T, handOver time.Duration) (together int32, handOvers uint64) {
	l := must(eventloop.New(eventloop.Options{HandOver: handOver, StallAfter: -1}))
	defer func() { must(0, l.Close()) }()
	release := make(chan struct{})
	defer close(release)
	must(0, l.Execute(func() { <-release }))
	schedtest.Eventually(t, "the callback is outside", func() bool { return l.Stats().Outside == 1 })
	var inside, beside atomic.Int32
	var all sync.WaitGroup
	for range 200 {
		all.Add(1)
		must(0, l.Execute(func() {
			defer all.Done()
			if inside.Add(1) > 1 {
				beside.Add(1)
			}
			for began := time.Now(); time.Since(began) < 300*time.Microsecond; {
			}
			inside.Add(-1)
		}))
	}
	within(t, all.Wait)
	return beside.Load(), l.Stats().HandOvers
}

// A task that was stuck is carried for a while, and then runs on the reactor again.
func TestATaskThatWasStuckComesBack(t *testing.T) {
	l := open(t, eventloop.Options{HandOver: time.Millisecond, StallAfter: -1})
	release := make(chan struct{})
	var steps, apart atomic.Int64
	var stop atomic.Bool
	must(0, l.Go(func() {
		<-release
		for !stop.Load() {
			suspend.Yield()
			if l.Stats().Outside > 0 {
				apart.Add(1)
			} else {
				apart.Store(0)
			}
			steps.Add(1)
		}
	}))
	schedtest.Eventually(t, "the task is outside", func() bool { return l.Stats().Outside == 1 })
	close(release)
	schedtest.Eventually(t, "it has been carried", func() bool { return steps.Load() > 10 })
	schedtest.Eventually(t, "it is not carried any more", func() bool { return steps.Load() > 1000 && apart.Load() == 0 })
	stop.Store(true)
}

// After a task was stuck, the next task of its coroutine begins on the reactor.
func TestANewTaskIsNotCarried(t *testing.T) {
	l := open(t, eventloop.Options{HandOver: time.Millisecond, StallAfter: -1})
	schedtest.Eventually(t, "a new task was not carried", func() bool {
		before := l.Stats().HandOvers
		release := make(chan struct{})
		must(0, l.Go(func() { <-release }))
		schedtest.Eventually(t, "the task is outside", func() bool { return l.Stats().Outside == 1 && l.Stats().HandOvers > before })
		close(release)
		schedtest.Eventually(t, "it has ended", func() bool { return l.Stats().Outside == 0 })
		carried := 0
		for range 20 { // 20 tasks of ten steps; a careful reactor carries two steps of each
			var one sync.WaitGroup
			one.Add(1)
			must(0, l.Go(func() {
				defer one.Done()
				for range 10 {
					if l.Stats().Outside > 0 {
						carried++
					}
					suspend.Yield()
				}
			}))
			within(t, one.Wait)
		}
		return carried <= 20*2
	})
}

// A task outside makes others runnable, while the reactor does so, too.
func TestATaskThatIsOutsideMakesOthersRunnable(t *testing.T) {
	const steps = 20_000
	l := open(t, eventloop.Options{HandOver: time.Millisecond, StallAfter: -1})
	var begun, woken atomic.Int64
	var all sync.WaitGroup
	gates := make([]*chanx.Chan[int], 100)
	for i := range gates {
		gates[i] = chanx.New[int](1)
		all.Add(1)
		must(0, l.Go(func() {
			defer all.Done()
			for range gates[i].All(bg) {
				woken.Add(1)
				suspend.Yield()
			}
		}))
	}
	release := make(chan struct{})
	sent := int64(0)
	var over atomic.Bool
	for range 2 { // keep the reactor busy meanwhile
		all.Add(1)
		must(0, l.Go(func() {
			defer all.Done()
			for !over.Load() {
				suspend.Yield()
			}
		}))
	}
	all.Add(1)
	must(0, l.Go(func() {
		defer all.Done()
		<-release
		defer over.Store(true)
		for i := range steps { // a long step
			all.Add(1)
			must(0, l.Go(func() { begun.Add(1); all.Done() }))
			if ok, _ := gates[i%len(gates)].TrySend(i); ok {
				sent++
			}
		}
		for _, g := range gates {
			g.Close()
		}
	}))
	schedtest.Eventually(t, "the task is outside", func() bool { return l.Stats().Outside == 1 })
	close(release)
	within(t, all.Wait)
	if begun.Load() != steps || woken.Load() != sent {
		t.Errorf("%d of %d have begun, %d of %d were woken", begun.Load(), steps, woken.Load(), sent)
	}
}
