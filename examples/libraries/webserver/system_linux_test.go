package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A FIFO in the directory is not served as a file, and does not block the server.
func TestFIFO(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	defer schedtest.Within(t, schedtest.Deadline)()
	s := start(t, tcps["the kernel's TCP"], dir, false)
	for range 100 {
		c := s.dial(t)
		c.send(get("/fifo"))
		c.expect(404, "not found\n")
	}
}
