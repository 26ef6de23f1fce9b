package stocktest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation"
)

// A service and a client of net/http run unchanged, 50 ms apart. A handshake and a response take 200 ms of the World's time, with
// each seed.
func Example() {
	var answer string
	inTest(func(t *testing.T) { // a test has its own t
		simulation.Test(t, func(_ context.Context, w *simulation.World) error {
			w.SetFaults(simulation.Faults{MinLatency: 50 * time.Millisecond, MaxLatency: 50 * time.Millisecond})
			w.Node("server").Start(func(_ context.Context, h *simulation.Host) {
				ln, err := h.Listen("tcp", "0.0.0.0:80")
				if err == nil {
					err = http.Serve(ln, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "hello from ", r.Host) }))
				}
				w.Log("%v", err)
			})
			errs := make(chan error)
			w.Node("client").Start(func(_ context.Context, h *simulation.Host) {
				began := time.Now()
				tr := &http.Transport{DialContext: h.Dial}
				defer tr.CloseIdleConnections()
				resp, err := (&http.Client{Transport: tr}).Get("http://server/")
				if err == nil {
					var body []byte
					body, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					answer = fmt.Sprintf("%s after %v", body, time.Since(began))
				}
				errs <- err
			})
			return <-errs
		}, simulation.TestOptions{InProcess: true, Seeds: 1, Options: simulation.Options{Guests: true}})
	})
	fmt.Println(answer)
	// Output: hello from server after 200ms
}

// inTest runs f in a test, although the caller is an example.
func inTest(f func(t *testing.T)) {
	v := flag.Lookup("test.v").Value // under -v, the test would print into the output of the example
	defer func(was string) { _ = v.Set(was) }(v.String())
	_ = v.Set("false")
	testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "Example", F: f}})
}
