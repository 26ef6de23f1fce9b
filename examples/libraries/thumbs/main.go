// Thumbs makes thumbnails in three processes. One process is killed, but no thumbnail is lost.
//
//	go run .                 everything: the front, three replicas, 200 pictures, and a kill -9 in the middle
//	go run . -pictures 2000  the same with more pictures
//
// The front is an HTTP server. It puts each posted picture into a JetStream queue and answers with status 202, or with 503 when the queue
// is full. Each replica is a process with a pipe of two stages: the first scales pictures, and the second stores them in batches. A message
// is acknowledged when its thumbnail is stored.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/braidgo/braid/stage"
	queue "github.com/braidgo/braid/stage/jetstream"
)

// A picture is an image to scale, or its thumbnail.
type picture struct {
	Name string
	PNG  []byte
}

const width = 4 // the number of tasks in progress in each replica

func open(ctx context.Context, url string) (*queue.Queue[picture], func(), error) {
	c, err := nats.Connect(url, nats.ReconnectWait(50*time.Millisecond), nats.MaxReconnects(-1))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(c)
	if err != nil {
		return nil, nil, err
	}
	q, err := queue.Open[picture](ctx, js, "pictures", queue.Options{Queue: 50, InFlight: 3 * width, AckWait: 2 * time.Second})
	return q, c.Close, err
}

// scale returns p, scaled down to at most 64 by 64 pixels.
func scale(_ context.Context, p picture) (picture, error) {
	in, err := png.Decode(bytes.NewReader(p.PNG))
	if err != nil {
		return p, err
	}
	b := in.Bounds()
	by := max(1, (max(b.Dx(), b.Dy())+63)/64)
	out := image.NewRGBA(image.Rect(0, 0, max(1, b.Dx()/by), max(1, b.Dy()/by)))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			out.Set(x, y, in.At(b.Min.X+x*by, b.Min.Y+y*by))
		}
	}
	var to bytes.Buffer
	err = png.Encode(&to, out)
	return picture{p.Name, to.Bytes()}, err
}

// storeIn returns a handler that writes thumbnails to dir. Each file is written completely or not at all. A thumbnail that is delivered
// twice replaces its own file.
func storeIn(dir string) func(_ context.Context, in []picture, _ []string) error {
	return func(_ context.Context, in []picture, _ []string) error {
		errs := make(stage.Errors, len(in))
		for i, p := range in {
			tmp, err := os.CreateTemp(dir, ".tmp")
			if err == nil {
				_, err = tmp.Write(p.PNG)
				err = errors.Join(err, tmp.Close())
			}
			if err == nil {
				err = os.Rename(tmp.Name(), filepath.Join(dir, p.Name+".png"))
			}
			errs[i] = err
		}
		return errs
	}
}

// replica serves the queue until the standard input ends.
func replica(url, dir string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, closeAll, err := open(ctx, url)
	if err != nil {
		return err
	}
	defer closeAll()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	scaling := stage.New("scale", scale, stage.Options{Width: runtime.GOMAXPROCS(0)})
	storing := stage.NewBatch("store", storeIn(dir), stage.Options{Batch: 16})
	if err := queue.Serve(ctx, q, stage.Pipe(scaling, storing), width); !errors.Is(err, context.Canceled) {
		return err
	}
	return stage.Shutdown(context.Background(), scaling, storing)
}

var name = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// front returns the handler of the HTTP server.
func front(q *queue.Queue[picture]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := r.URL.Query().Get("name")
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 512<<10))
		if err != nil || !name.MatchString(n) {
			http.Error(w, "a name and a PNG of at most 512 KiB", http.StatusBadRequest)
			return
		}
		switch err := q.Submit(r.Context(), picture{n, data}, n); {
		case err == nil:
			w.WriteHeader(http.StatusAccepted)
		case errors.Is(err, stage.ErrOverload):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// drawing returns a random picture as a PNG file.
func drawing() []byte {
	m := image.NewRGBA(image.Rect(0, 0, 200, 150))
	c := color.RGBA{uint8(rand.N(256)), uint8(rand.N(256)), uint8(rand.N(256)), 255}
	for i := range 200 {
		m.Set(i, rand.N(150), c)
	}
	var b bytes.Buffer
	_ = png.Encode(&b, m)
	return b.Bytes()
}

// run runs the whole example in dir, and returns how many requests the front rejected.
func run(dir string, pictures int, print io.Writer) (refused int, err error) {
	thumbs := filepath.Join(dir, "thumbs")
	if err := os.MkdirAll(thumbs, 0o700); err != nil {
		return 0, err
	}
	s, err := server.NewServer(&server.Options{JetStream: true, StoreDir: dir, Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	if err != nil {
		return 0, err
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(20 * time.Second) {
		return 0, errors.New("the server does not start")
	}
	q, closeAll, err := open(context.Background(), s.ClientURL())
	if err != nil {
		return 0, err
	}
	defer closeAll()
	var replicas []*exec.Cmd
	for range 3 {
		self, err := os.Executable()
		if err != nil {
			return 0, err
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "THUMBS_REPLICA="+s.ClientURL(), "THUMBS_DIR="+thumbs)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return 0, err
		}
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		replicas = append(replicas, cmd)
		defer func() { _ = in.Close(); _ = cmd.Wait() }()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	h := &http.Server{Handler: front(q), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = h.Serve(l) }()
	defer h.Close()
	for i := 0; i < pictures; {
		res, err := http.Post(fmt.Sprintf("http://%s/?name=p%d", l.Addr(), i), "image/png", bytes.NewReader(drawing()))
		if err != nil {
			return refused, err
		}
		_ = res.Body.Close()
		switch res.StatusCode {
		case http.StatusAccepted:
			if i++; i == pictures/2 {
				fmt.Fprintf(print, "kill -9 %d\n", replicas[0].Process.Pid)
				_ = replicas[0].Process.Kill()
			}
		case http.StatusServiceUnavailable:
			refused++
			time.Sleep(5 * time.Millisecond)
		default:
			return refused, errors.New(res.Status)
		}
	}
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, err := q.Waiting(context.Background())
		if err != nil || left == 0 {
			return refused, err
		}
		if time.Now().After(end) {
			return refused, fmt.Errorf("%d are left", left)
		}
	}
}

func main() {
	if url := os.Getenv("THUMBS_REPLICA"); url != "" {
		if err := replica(url, os.Getenv("THUMBS_DIR")); err != nil {
			log.Fatal(err)
		}
		return
	}
	pictures := flag.Int("pictures", 200, "how many")
	flag.Parse()
	dir, err := os.MkdirTemp("", "thumbs")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	refused, err := run(dir, *pictures, os.Stdout)
	if err != nil {
		log.Print(err)
		return
	}
	made, _ := filepath.Glob(filepath.Join(dir, "thumbs", "*.png"))
	fmt.Printf("%d pictures, %d thumbnails, %d times 503\n", *pictures, len(made), refused)
}
