package jetstream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/braidgo/braid/stage"
	queue "github.com/braidgo/braid/stage/jetstream"
)

var (
	bg      = context.Background()
	errOops = errors.New("oops")
)

// TestMain is also the main function of a replica.
func TestMain(m *testing.M) {
	if url := os.Getenv("BRAID_REPLICA"); url != "" {
		replica(url)
		return
	}
	os.Exit(m.Run())
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// serve starts a server in this process that stores in dir; port -1 is any.
func serve(t testing.TB, dir string, port int) *server.Server {
	s := must(server.NewServer(&server.Options{JetStream: true, StoreDir: dir, Port: port, Host: "127.0.0.1", NoSigs: true, NoLog: true}))
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("no server")
	}
	return s
}

func connect(url string) (*nats.Conn, jetstream.JetStream) {
	c := must(nats.Connect(url, nats.ReconnectWait(50*time.Millisecond), nats.MaxReconnects(-1)))
	return c, must(jetstream.New(c))
}

func open(t testing.TB, o queue.Options) (jetstream.JetStream, *queue.Queue[int]) {
	s := serve(t, t.TempDir(), -1)
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	c, js := connect(s.ClientURL())
	t.Cleanup(c.Close)
	return js, must(queue.Open[int](bg, js, "work", o))
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func waiting(q *queue.Queue[int]) int { return must(q.Waiting(bg)) }

func TestServe(t *testing.T) {
	_, q := open(t, queue.Options{Queue: 1000, InFlight: 8, Storage: jetstream.MemoryStorage})
	var in, most, sum atomic.Int64
	s := stage.New("s", func(_ context.Context, n int) (int, error) {
		most.Store(max(most.Load(), in.Add(1)))
		defer in.Add(-1)
		sum.Add(int64(n))
		return n, nil
	}, stage.Options{Width: 4})
	ctx, stop := context.WithCancel(bg)
	ended := make(chan error)
	go func() { ended <- queue.Serve(ctx, q, s, 4) }()
	want := int64(0)
	for i := range 500 {
		if err := q.Submit(bg, i, ""); err != nil {
			t.Fatal(err)
		}
		want += int64(i)
	}
	eventually(t, "all done", func() bool { return waiting(q) == 0 })
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if sum.Load() != want || most.Load() > 4 {
		t.Errorf("sum %d, want %d; %d at a time", sum.Load(), want, most.Load())
	}
	if err := s.Shutdown(bg); err != nil {
		t.Error(err)
	}
}

// A full queue returns ErrFull, and each id is stored once.
func TestFull(t *testing.T) {
	_, q := open(t, queue.Options{Queue: 3, Storage: jetstream.MemoryStorage})
	for range 5 {
		if err := q.Submit(bg, 1, "same"); err != nil {
			t.Fatal(err)
		}
	}
	if n := waiting(q); n != 1 {
		t.Fatalf("%d stored", n)
	}
	for i := range 2 {
		if err := q.Submit(bg, i, ""); err != nil {
			t.Fatal(err)
		}
	}
	err := q.Submit(bg, 9, "")
	if !errors.Is(err, stage.ErrFull) || !errors.Is(err, stage.ErrOverload) {
		t.Error(err)
	}
	if n := waiting(q); n != 3 {
		t.Errorf("%d stored", n)
	}
}

// A message that fails is delivered Tries times, and then is dead. A message that is not an int becomes a dead letter at once.
func TestDead(t *testing.T) {
	js, q := open(t, queue.Options{Tries: 2, Dead: "graveyard", Storage: jetstream.MemoryStorage})
	var tries atomic.Int32
	s := stage.New("s", func(context.Context, int) (int, error) { tries.Add(1); return 0, errOops }, stage.Options{})
	ctx, stop := context.WithCancel(bg)
	ended := make(chan error)
	go func() { ended <- queue.Serve(ctx, q, s, 2) }()
	if err := q.Submit(bg, 1, ""); err != nil {
		t.Fatal(err)
	}
	must(js.Publish(bg, "stage.work", []byte("no int")))
	eventually(t, "buried", func() bool { return waiting(q) == 0 })
	stop()
	<-ended
	info := must(must(js.Stream(bg, "work-dead")).Info(bg))
	if info.State.Msgs != 2 || tries.Load() != 2 {
		t.Errorf("%d dead, %d tries", info.State.Msgs, tries.Load())
	}
	m := must(must(js.Stream(bg, "work-dead")).GetMsg(bg, 2))
	if string(m.Data) != "1" || m.Header.Get("Reason") != "oops" {
		t.Errorf("%s, %v", m.Data, m.Header)
	}
	_ = s.Shutdown(bg)
}

// A message is acknowledged when its task and all child tasks are done.
func TestTheWholeTree(t *testing.T) {
	_, q := open(t, queue.Options{Storage: jetstream.MemoryStorage})
	let := make(chan struct{})
	leaf := stage.New("leaf", func(context.Context, int) (int, error) { <-let; return 0, nil }, stage.Options{})
	var begun atomic.Int32
	root := stage.New("root", func(ctx context.Context, n int) (int, error) { begun.Add(1); return n, leaf.Submit(ctx, n) }, stage.Options{})
	ctx, stop := context.WithCancel(bg)
	ended := make(chan error)
	go func() { ended <- queue.Serve(ctx, q, root, 1) }()
	if err := q.Submit(bg, 1, ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "begun", func() bool { return begun.Load() == 1 && leaf.Stats().Busy == 1 })
	if waiting(q) != 1 {
		t.Error("acknowledged before its child is done")
	}
	stop()
	close(let)
	<-ended
	if waiting(q) != 0 {
		t.Error("not acknowledged, though Serve has ended")
	}
	_ = stage.Shutdown(bg, root, leaf)
}

// If the flow is closed, Serve ends, and its messages stay in the queue.
func TestClosed(t *testing.T) {
	_, q := open(t, queue.Options{Storage: jetstream.MemoryStorage})
	s := stage.New("s", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{})
	_ = s.Shutdown(bg)
	if err := q.Submit(bg, 1, ""); err != nil {
		t.Fatal(err)
	}
	if err := queue.Serve(bg, q, s, 1); !errors.Is(err, stage.ErrClosed) {
		t.Error(err)
	}
	if waiting(q) != 1 {
		t.Error("lost")
	}
}

const (
	replicaWidth = 4
	ackWait      = 3 * time.Second
)

func processOptions() queue.Options {
	return queue.Options{Queue: 100, InFlight: 3 * replicaWidth, AckWait: ackWait, Tries: 100}
}

// replica is the main function of a process that serves, and prints the number of each finished message. It ends when its input
// ends.
func replica(url string) {
	_, js := connect(url)
	q := must(queue.Open[int](bg, js, "work", processOptions()))
	s := stage.New("s", func(_ context.Context, n int) (int, error) {
		time.Sleep(time.Millisecond)
		_, err := os.Stdout.WriteString(strconv.Itoa(n) + "\n")
		return n, err
	}, stage.Options{Width: replicaWidth})
	ctx, stop := signal.NotifyContext(bg, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	_ = queue.Serve(ctx, q, s, replicaWidth)
	_ = s.Shutdown(bg)
}

// Three replicas are processes. One is killed, one is asked to end, and the server is restarted once. No message is lost, and at
// most the messages that the killed replica was handling are done twice.
func TestReplicasAsProcesses(t *testing.T) {
	const all = 5000
	dir := t.TempDir()
	s := serve(t, dir, -1)
	port := s.Addr().String()
	port = port[strings.LastIndexByte(port, ':')+1:]
	url := s.ClientURL()
	c, js := connect(url)
	defer c.Close()
	q := must(queue.Open[int](bg, js, "work", processOptions()))

	var mu sync.Mutex
	times := make([]int, all)
	done, doubled := 0, 0
	var readers sync.WaitGroup
	var replicas []*exec.Cmd
	var inputs []io.Closer
	var silent [3]atomic.Bool // the replica has closed its output
	for i := range silent {
		cmd := exec.Command(must(os.Executable()))
		cmd.Env = append(os.Environ(), "BRAID_REPLICA="+url)
		cmd.Stderr = os.Stderr
		out, in := must(cmd.StdoutPipe()), must(cmd.StdinPipe())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		replicas, inputs = append(replicas, cmd), append(inputs, in)
		readers.Go(func() {
			defer silent[i].Store(true)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				n := must(strconv.Atoi(lines.Text()))
				mu.Lock()
				if times[n]++; times[n] > 1 {
					doubled++
				} else {
					done++
				}
				mu.Unlock()
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return done }
	refused := 0
	killed, asked, restarted := false, false, false
	for i := 0; i < all; {
		if !killed && i > all/3 {
			killed = true
			if err := replicas[0].Process.Kill(); err != nil { // kill -9
				t.Fatal(err)
			}
		}
		if !asked && i > all/2 {
			asked = true
			if err := replicas[1].Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the replica that is asked to end ends", func() bool { return silent[1].Load() })
		}
		if !restarted && i > 2*all/3 {
			restarted = true
			s.Shutdown()
			s.WaitForShutdown()
			s = serve(t, dir, must(strconv.Atoi(port)))
		}
		ctx, cancel := context.WithTimeout(bg, 2*time.Second)
		err := q.Submit(ctx, i, fmt.Sprint("id", i)) // the id makes a repetition safe
		cancel()
		switch {
		case err == nil:
			i++
		case errors.Is(err, stage.ErrFull):
			refused++
			time.Sleep(2 * time.Millisecond)
		default:
			time.Sleep(20 * time.Millisecond)
		}
	}
	eventually(t, "all done", func() bool { return count() == all && waiting(q) == 0 })
	for _, in := range inputs {
		_ = in.Close()
	}
	readers.Wait()
	for i, cmd := range replicas {
		if err := cmd.Wait(); err != nil && i > 0 {
			t.Error(err)
		}
	}
	s.Shutdown()
	s.WaitForShutdown()
	t.Logf("%d done, %d doubled, refused %d times", done, doubled, refused)
	if doubled > replicaWidth {
		t.Errorf("%d were done twice, and at most %d were in progress", doubled, replicaWidth)
	}
	if refused == 0 {
		t.Error("the bound was never reached")
	}
}
