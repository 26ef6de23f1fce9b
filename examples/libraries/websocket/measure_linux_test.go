package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
)

func TestParkedConnectionsTakeLess(t *testing.T) {
	bytes := map[string]float64{}
	for i, s := range servers {
		each, err := measure(i, 1000)
		require.NoError(t, err, s.name)
		bytes[s.name] = each
	}
	least := bytes["gobwas/ws, on a goroutine"]
	if schedtest.Race { // the race detector adds some for each connection
		least = bytes["gobwas/ws, in its handler"]
	}
	require.Less(t, bytes["gobwas/ws, parked"], least/2)
	require.Less(t, bytes["gobwas/ws, parked"], bytes["coder/websocket, in its handler"]/4)
}
