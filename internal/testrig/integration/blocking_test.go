package integration_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// A thousand tasks each take a connection in one Call and return it in another. All end, although few connections exist. The
// scheduler reports once that it has increased its width.
func TestTransactionsInCalls(t *testing.T) {
	const tasks, connections = 1000, 4
	for name, open := range map[string]func(say func([]byte)) (suspend.Spawner, func() error){
		"loop": func(say func([]byte)) (suspend.Spawner, func() error) {
			l, err := eventloop.New(eventloop.Options{OnStall: say})
			require.NoError(t, err)
			return l, l.Close
		},
		"pool of one": func(say func([]byte)) (suspend.Spawner, func() error) {
			p := workstealing.New(workstealing.Options{Workers: 1, OnStall: say})
			return p, p.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			said := make(chan string, 100)
			s, closeIt := open(func(text []byte) { said <- string(text) })
			free := make(chan int, connections)
			for i := range connections {
				free <- i
			}
			ended := make(chan error, tasks)
			for range tasks {
				require.NoError(t, s.Go(func() {
					c, err := suspend.BlockingValue(bg, func() (int, error) { return <-free, nil })
					if err == nil {
						err = suspend.Blocking(bg, func() {}) // stands for a query
					}
					if err == nil {
						err = suspend.Blocking(bg, func() { free <- c })
					}
					ended <- err
				}))
			}
			for range tasks {
				require.NoError(t, <-ended)
			}
			require.NoError(t, closeIt())
			close(said)
			grown := 0
			for text := range said { // a slow machine may cause further reports
				if strings.HasPrefix(text, "suspend.Blocking: 64 functions run") {
					grown++
				}
			}
			require.Equal(t, 1, grown)
		})
	}
}
