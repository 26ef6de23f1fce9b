package view_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stage/view"
)

var bg = context.Background()

// overloaded returns a pipe whose second stage gets twice its capacity.
func overloaded(t *testing.T) (observed []stage.Observed, offer func(n int), closeAll func()) {
	fast := stage.New("<fast>", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{})
	disk := stage.New("disk", func(_ context.Context, n int) (int, error) {
		time.Sleep(10 * time.Millisecond)
		return n, nil
	}, stage.Options{Width: 4, Queue: 8, Reject: true})
	front := stage.New("front", func(ctx context.Context, n int) (int, error) { return n, disk.Submit(stage.Detach(ctx), n) }, stage.Options{Queue: 100})
	p := stage.Pipe(fast, front)
	observed = append(stage.Stages(p), disk)
	return observed, func(n int) {
		for i := range n {
			require.NoError(t, p.Submit(bg, i))
			time.Sleep(1250 * time.Microsecond)
		}
	}, func() { require.NoError(t, stage.Shutdown(bg, fast, front, disk)) }
}

// The bottleneck is the stage whose load exceeds its width. Its row has the rate that it cannot exceed.
func TestBottleneck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stages, offer, closeAll := overloaded(t)
		offer(100)
		var before []stage.Stats
		for _, s := range stages {
			before = append(before, s.Stats())
		}
		offer(800)
		var now []stage.Stats
		for _, s := range stages {
			now = append(now, s.Stats())
		}
		rows := view.Rows(before, now, time.Second)
		closeAll()
		require.Equal(t, "disk: A×L = 8, W = 4: S can be 400/s at most", rows[2].Bottleneck)
		require.InDelta(t, 800, rows[2].A, 1)
		require.InDelta(t, 400, rows[2].S, 4)
		require.InDelta(t, 1, rows[2].Utilisation, 0.01)
		require.Empty(t, rows[0].Bottleneck+rows[1].Bottleneck)
		require.Contains(t, view.Text(rows), "bottleneck: disk")
	})
}

// A row has the levels of the later snapshot, and the rates between the two.
func TestRows(t *testing.T) {
	before := stage.Stats{Name: "s", Arrived: 10, Rejected: 1, Late: 2, Failed: 3, Completed: 4}
	now := stage.Stats{Name: "s", Arrived: 30, Rejected: 3, Late: 6, Failed: 9, Completed: 14, Cancelled: 5,
		Waiting: 21, Busy: 22, Delayed: 23, Outside: 24, Handlers: 25, Width: 26, Queue: 27, Reason: "tasks were refused"}
	r := view.Rows([]stage.Stats{before}, []stage.Stats{now}, 2*time.Second)[0]
	require.Equal(t, []float64{10, 1, 2, 3}, []float64{r.A, r.Rejected, r.Late, r.Failed})
	require.Equal(t, []int{21, 22, 23, 24, 26, 27}, []int{r.Waiting, r.Busy, r.Delayed, r.Outside, r.W, r.Queue})
	require.Equal(t, []uint64{30, 3, 6, 9, 14, 5},
		[]uint64{r.TotalArrived, r.TotalRejected, r.TotalLate, r.TotalFailed, r.TotalCompleted, r.TotalCancelled})
	require.Equal(t, "tasks were refused", r.Reason)
	require.Regexp(t, `last change of W *\n.* tasks were refused *\n`, view.Text([]view.Row{r}))
}

func get(t *testing.T, url, accept string) (body, kind string) {
	r, err := http.NewRequest("GET", url, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(b), res.Header.Get("Content-Type")
}

func TestFormats(t *testing.T) {
	s := stage.New("disk", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{})
	_, err := s.Do(bg, 1)
	require.NoError(t, err)
	server := httptest.NewServer(view.Handler(s))
	defer server.Close()
	body, kind := get(t, server.URL, "*/*")
	require.Contains(t, kind, "text/plain")
	require.Contains(t, body, "disk")
	for url, accept := range map[string]string{server.URL: "application/json", server.URL + "?as=json": "text/html"} {
		body, kind = get(t, url, accept)
		require.Contains(t, kind, "application/json")
		var rows []view.Row
		require.NoError(t, json.Unmarshal([]byte(body), &rows))
		require.EqualValues(t, 1, rows[0].TotalCompleted)
	}
	body, kind = get(t, server.URL, "text/html,*/*")
	require.Contains(t, kind, "text/html")
	require.NotContains(t, body, "src=")
	require.NoError(t, s.Shutdown(bg))
}
