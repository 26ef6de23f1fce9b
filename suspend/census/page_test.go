package census_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend/census"
)

// ask returns the response of the handler.
func ask(t *testing.T, server *httptest.Server, query, accept string) (kind, body string) {
	r, err := http.NewRequest("GET", server.URL+"/debug/braid/"+query, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	answer, err := server.Client().Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, 200, answer.StatusCode)
	return answer.Header.Get("Content-Type"), string(all)
}

func serve(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle("/debug/braid/", census.Handler())
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// holding lists the lines of the page and of the text that name a deadlock: both tasks, the objects for which they wait, the lines
// of code, and the holders.
var holding = []string{
	`goroutine \d+ \(fifo\) waits for mutex.Mutex "a": mutex.Mutex.LockContext at census_test.crosswise.func1 \(census/census_test.go:\d+\), `,
	`goroutine \d+ \(workstealing\) has held it for \S+: taken at census_test.crosswise.func1 \(census/census_test.go:\d+\)`,
	`goroutine \d+ \(workstealing\) waits for mutex.Mutex "b": mutex.Mutex.LockContext at census_test.crosswise.func1 \(census/census_test.go:\d+\), `,
	`goroutine \d+ \(fifo\) has held it for \S+: taken at census_test.crosswise.func1 \(census/census_test.go:\d+\)`,
}

func TestHandler(t *testing.T) {
	on(t)
	defer crosswise()()
	eventually(t, func(s census.Snapshot) bool { return len(s.Deadlocks) == 1 })
	server := serve(t)

	kind, text := ask(t, server, "", "*/*")
	require.Equal(t, "text/plain; charset=utf-8", kind)
	require.Contains(t, text, "\ndeadlock: 2 tasks wait for each other; a context may end it\n")
	kind, html := ask(t, server, "", "text/html,*/*")
	require.Equal(t, "text/html; charset=utf-8", kind)
	require.NotRegexp(t, `src=|href="[^?]|url\(`, html, "the page needs nothing from elsewhere")
	for _, line := range holding {
		require.Regexp(t, line, text)
		require.Regexp(t, line, strings.ReplaceAll(html, "&#34;", `"`))
	}
	_, text = ask(t, server, "?as=text", "text/html")
	require.True(t, strings.HasPrefix(text, "census: 2 waiting, 0 not waiting, 1 deadlock; on for "), text)

	kind, data := ask(t, server, "", "application/json")
	require.Equal(t, "application/json", kind)
	_, data2 := ask(t, server, "?as=json", "text/html")
	for _, data := range []string{data, data2} {
		var s census.Snapshot
		require.NoError(t, json.Unmarshal([]byte(data), &s))
		require.Len(t, s.Deadlocks[0].Cycle, 2)
		require.Len(t, waiting(s, "mutex.Mutex.LockContext"), 2)
		require.Contains(t, s.Deadlocks[0].Cycle[0].Holder.At.File, "census_test.go")
	}
}

func TestNamesAreText(t *testing.T) {
	on(t)
	p := census.Name(promise.New[int](), "<script>alert(1)</script>")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = p.Await(bg)
	}()
	eventually(t, func(s census.Snapshot) bool { return len(waiting(s, "promise.Promise.Await")) == 1 })
	_, html := ask(t, serve(t), "", "text/html")
	require.NotContains(t, html, "<script>")
	require.Contains(t, html, "&lt;script&gt;alert(1)&lt;/script&gt;")
	_ = p.Fill(1)
	<-ended
}

func TestHandlerWhileOff(t *testing.T) {
	server := serve(t)
	for _, accept := range []string{"*/*", "text/html"} {
		_, text := ask(t, server, "", accept)
		require.Contains(t, text, "census: off. census.Start switches it on.")
	}
}
