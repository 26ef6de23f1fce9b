package main

import (
	"os"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/stretchr/testify/require"
)

// TestMain runs a server if the measuring process has started this one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestParkedConnectionsTakeLess(t *testing.T) {
	bytes := map[string]float64{}
	for i, s := range servers {
		each, err := measure(i, 1500)
		require.NoError(t, err, s.name)
		bytes[s.name] = each
	}
	most := 1.0 / 8
	if schedtest.Race { // goroutines need no more memory than before, but the race detector adds some for each connection
		most = 1.0 / 4
	}
	require.Less(t, bytes["httppark"], bytes["net/http"]*most)
	require.Less(t, bytes["httppark"+overTLS], bytes["net/http"+overTLS]/2)
	require.Less(t, bytes["eventloop, ServeParked"], bytes["eventloop, Serve"]/2)
}
