//go:build amd64 || arm64

package volume

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// A node makes the calls of a program without the overlay.
type node struct {
	t *testing.T
	*Volume
}

func newNode(t *testing.T) node {
	v, err := New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Remove()) })
	return node{t, v}
}

// call makes a call, which must be one for files of the node. A sync takes no time.
func (n node) call(trap uintptr, a [6]uintptr, path, other string, data []byte, p any) (uintptr, syscall.Errno) {
	r, err, done, w := n.Call(trap, &a, path, other, data, p)
	require.True(n.t, done)
	require.False(n.t, w.Again)
	if w.Is() {
		return n.EndSync(w, nil)
	}
	return r, err
}

const here = ^uintptr(99) // AT_FDCWD

func (n node) open(name string, flags int) int {
	fd, err := n.call(syscall.SYS_OPENAT, [6]uintptr{here, 0, uintptr(flags), 0o600}, name, "", nil, nil)
	require.Zero(n.t, err)
	n.t.Cleanup(func() { Closed(int(fd)); _ = syscall.Close(int(fd)) })
	return int(fd)
}

func (n node) create(name, text string) (fd int) {
	fd = n.open(name, syscall.O_CREAT|syscall.O_RDWR)
	_, err := n.call(syscall.SYS_WRITE, [6]uintptr{uintptr(fd)}, "", "", []byte(text), nil)
	require.Zero(n.t, err)
	return fd
}

func (n node) fsync(fd int) {
	_, err := n.call(syscall.SYS_FSYNC, [6]uintptr{uintptr(fd)}, "", "", nil, nil)
	require.Zero(n.t, err)
}

func (n node) powerOff() {
	s := draws.Source(1)
	require.NoError(n.t, n.PowerOff(&s))
}

// real returns what the folder has.
func (n node) real(name string) string {
	b, err := os.ReadFile(filepath.Join(n.root, name))
	if err != nil {
		return "-"
	}
	return string(b)
}

// The folder is restored with its links and modes, and continues to record changes.
func TestPowerOffRestores(t *testing.T) {
	n := newNode(t)
	require.Zero(t, second(n.call(syscall.SYS_MKDIRAT, [6]uintptr{here, 0, 0o711}, "/d", "", nil, nil)))
	n.fsync(n.create("/d/f", "text"))
	require.Zero(t, second(n.call(syscall.SYS_LINKAT, [6]uintptr{here, 0, here}, "/d/f", "/d/g", nil, nil)))
	require.Zero(t, second(n.call(syscall.SYS_SYMLINKAT, [6]uintptr{0, here}, "/d/f", "/d/s", nil, nil)))
	n.fsync(n.open("/d", syscall.O_RDONLY))
	n.fsync(n.open("/", syscall.O_RDONLY))
	for range 2 {
		n.powerOff()
		for _, name := range []string{"/d/f", "/d/g", "/d/s"} {
			require.Equal(t, "text", n.real(name))
		}
		require.Zero(t, second(n.call(syscall.SYS_TRUNCATE, [6]uintptr{0, 2}, "/d/g", "", nil, nil)))
		require.Equal(t, "te", n.real("/d/s"), "one file with three names")
		var st syscall.Stat_t
		require.NoError(t, syscall.Stat(n.root+"/d", &st))
		require.EqualValues(t, 0o711, st.Mode&0o777)
		f := n.open("/d/f", syscall.O_RDWR)
		require.Zero(t, second(n.call(syscall.SYS_PWRITE64, [6]uintptr{uintptr(f)}, "", "", []byte("text"), nil)))
		n.fsync(f)
	}
}

// A descriptor of a program that has crashed refers to nothing, and its number is not given to another file.
func TestCrashEndsDescriptors(t *testing.T) {
	n := newNode(t)
	fd := n.create("/f", "x")
	n.Crash()
	_, err := syscall.Pwrite(fd, []byte("y"), 0)
	require.Error(t, err)
	require.NotEqual(t, fd, n.open("/f", syscall.O_RDWR))
	require.Equal(t, "x", n.real("/f"))
	a := [6]uintptr{uintptr(fd)}
	_, _, done, _ := n.Call(syscall.SYS_WRITE, &a, "", "", nil, nil)
	require.False(t, done)
}

// What the kernel measures is not on a node, and a disk is empty or full.
func TestMeasures(t *testing.T) {
	n := newNode(t)
	for _, name := range []string{"/proc/self/stat", "/proc/1/status", "/proc/self/../meminfo"} {
		_, err := n.call(syscall.SYS_OPENAT, [6]uintptr{here}, name, "", nil, nil)
		require.Equal(t, syscall.ENOENT, err, name)
	}
	_, _, done, _ := n.Call(syscall.SYS_OPENAT, &[6]uintptr{here}, "/proc/self/fd", "", nil, nil)
	require.False(t, done)
	n.create("/stat", "text")
	fd := uintptr(n.open("/stat", syscall.O_RDONLY))
	for _, full := range []bool{false, true} {
		n.Full = full
		var byPath, byHandle syscall.Statfs_t
		require.Zero(t, second(n.call(syscall.SYS_STATFS, [6]uintptr{}, "/", "", nil, &byPath)))
		require.Zero(t, second(n.call(syscall.SYS_FSTATFS, [6]uintptr{fd}, "", "", nil, &byHandle)))
		require.Equal(t, byPath, byHandle)
		require.EqualValues(t, 1<<40, byPath.Blocks*uint64(byPath.Bsize))
		require.Equal(t, full, byPath.Bavail == 0)
	}
}

// sweep removes the folder of a process that has ended, and not the folder of another Volume.
func TestSweep(t *testing.T) {
	n := newNode(t)
	base := filepath.Dir(n.root)
	left, err := os.MkdirTemp(base, prefix)
	require.NoError(t, err)
	old := syscall.NsecToTimeval(1)
	require.NoError(t, syscall.Utimes(left, []syscall.Timeval{old, old}))
	require.NoError(t, syscall.Utimes(n.root, []syscall.Timeval{old, old}))
	sweep(base)
	require.NoDirExists(t, left)
	require.DirExists(t, n.root)
}

func second[A, B any](_ A, b B) B { return b }
