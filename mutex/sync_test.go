package mutex_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/mutex"
)

// rwLocker has the methods of a sync.RWMutex.
type rwLocker interface {
	sync.Locker
	TryLock() bool
	RLock()
	TryRLock() bool
	RUnlock()
	RLocker() sync.Locker
}

var _, _ rwLocker = new(sync.RWMutex), new(mutex.RWMutex)

// TestATypeLikeThatOfSync changes only the type in a program for package sync.
func TestATypeLikeThatOfSync(t *testing.T) {
	type account struct {
		mutex.Mutex
		amount int
	}
	add := func(l sync.Locker, amount *int) { // as other packages lock a sync.Locker
		l.Lock()
		defer l.Unlock()
		*amount++
	}
	var a account
	var rw mutex.RWMutex
	n, ready := 0, false
	of := map[string]interface {
		Wait()
		Broadcast()
	}{"sync.Cond": sync.NewCond(&a), "cond.Cond": waiting{cond.New(&a)}, "readers": sync.NewCond(rw.RLocker())}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { add(&a, &a.amount); add(&rw, &n) })
	}
	for name, c := range of {
		all.Go(func() {
			l := sync.Locker(&a)
			if name == "readers" {
				l = rw.RLocker()
			}
			l.Lock()
			defer l.Unlock()
			for !ready {
				c.Wait()
			}
		})
	}
	a.Lock()
	rw.Lock()
	ready = true
	rw.Unlock()
	a.Unlock()
	for _, c := range of {
		c.Broadcast()
	}
	all.Wait()
	require.Equal(t, []int{8, 8}, []int{a.amount, n})
	require.True(t, a.TryLock() && rw.TryLock())
}

// waiting has a Wait without a context.
type waiting struct{ *cond.Cond }

func (w waiting) Wait() { _ = w.Cond.Wait(bg) }

// A program that locks a Mutex is at most 0.6 MB larger than one that locks a sync.Mutex, and links at most 25 more packages.
func TestWeight(t *testing.T) {
	size := func(name string) (bytes int64, packages int) {
		folder, file := "./testdata/weight/"+name, filepath.Join(t.TempDir(), name)
		out, err := exec.Command("go", "build", "-ldflags=", "-o", file, folder).CombinedOutput()
		require.NoError(t, err, string(out))
		info, err := os.Stat(file)
		require.NoError(t, err)
		out, err = exec.Command("go", "list", "-deps", folder).Output()
		require.NoError(t, err)
		return info.Size(), strings.Count(string(out), "\n")
	}
	native, nativePackages := size("native")
	braid, braidPackages := size("braid")
	t.Logf("%d bytes and %d packages more", braid-native, braidPackages-nativePackages)
	require.LessOrEqual(t, braid-native, int64(600_000))
	require.LessOrEqual(t, braidPackages-nativePackages, 25)
}
