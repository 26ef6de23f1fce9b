package threadlock

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/prefetch"
)

func locked() bool {
	var task prefetch.Task
	task.Begin()
	return Locked(task.G())
}

// On a processor that prefetch knows, a lock is found, and it lasts until the last Unlock. On others nothing is known, and Locked is false.
func TestLocked(t *testing.T) {
	Find()
	known := runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"
	require.Equal(t, known, offset != 0, "a goroutine that locks its thread in a task would end the process")
	require.False(t, locked())
	runtime.LockOSThread()
	runtime.LockOSThread()
	require.Equal(t, known, locked())
	other := make(chan bool)
	go func() { other <- locked() }()
	require.False(t, <-other, "another goroutine is locked, too")
	runtime.UnlockOSThread()
	require.Equal(t, known, locked())
	runtime.UnlockOSThread()
	require.False(t, locked())
	require.False(t, Locked(nil))
}

// If no word changes with the lock and back, the word is unknown. A word that is not the lock would send all tasks on the slow way, or hide
// a lock.
func TestAWordThatIsNotTheLock(t *testing.T) {
	require.Zero(t, search(func() {}, func() {}), "no word changes")
	require.Zero(t, search(runtime.LockOSThread, func() {}), "the word stays set")
}
