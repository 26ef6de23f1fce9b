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

// The transactions of a thousand tasks end, though each waits for a connection in one Call and gives it back in another. The scheduler
// says once that its width has grown.
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
						err = suspend.Blocking(bg, func() {}) // a query
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
			for text := range said { // a slow machine may say more
				if strings.HasPrefix(text, "suspend.Blocking: 64 functions run") {
					grown++
				}
			}
			require.Equal(t, 1, grown)
		})
	}
}
