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

// On a processor that package prefetch supports, Locked reports a lock until the last Unlock. On other processors it always
// returns false.
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

// If no word of the runtime's memory changes when a thread is locked and unlocked, the word is unknown. A wrong word would slow
// down all tasks, or hide a lock.
func TestAWordThatIsNotTheLock(t *testing.T) {
	require.Zero(t, search(func() {}, func() {}), "no word changes")
	require.Zero(t, search(runtime.LockOSThread, func() {}), "the word stays set")
}
