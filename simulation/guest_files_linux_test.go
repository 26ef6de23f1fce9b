package simulation_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// These tests need the overlay: without it, they do nothing.

// withFiles runs main in a World with each of the seeds from 1 to n.
func withFiles(t *testing.T, n int, o simulation.Options, main func(w *simulation.World)) (last simulation.Report) {
	if !simulation.Nodes() {
		return last
	}
	simulation.Calm(t)
	for seed := range n {
		o.Seed = uint64(seed + 1)
		last = simulation.RunGuests(t, o, func(_ context.Context, w *simulation.World) error {
			main(w)
			return nil
		})
		require.NoError(t, last.Err)
	}
	return last
}

// on calls f on a node, which it starts if it has crashed, and waits for the end of f.
func on(n *simulation.Node, f func()) {
	done := make(chan struct{})
	n.Start(func(context.Context, *simulation.Host) {
		defer close(done)
		f()
	})
	<-done
}

func syncDir(name string) {
	f := must(os.Open(name))
	check(f.Sync())
	check(f.Close())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// afterCrash counts what look returns on a node after setup, and after the crash.
func afterCrash(t *testing.T, n int, o simulation.Options, crash func(n *simulation.Node), setup func(), look func() string) map[string]int {
	came := map[string]int{}
	withFiles(t, n, o, func(w *simulation.World) {
		node := w.Node("n")
		on(node, setup)
		crash(node)
		on(node, func() { came[look()]++ })
	})
	return came
}

// A file has the name that the program gave it, and belongs to the node.
func TestGuestFiles(t *testing.T) {
	withFiles(t, 1, simulation.Options{}, func(w *simulation.World) {
		on(w.Node("a"), func() {
			check(os.MkdirAll("/data/deep", 0o755))
			check(os.WriteFile("/data/deep/x", []byte("of a"), 0o600))
			f := must(os.OpenFile("/data/deep/x", os.O_RDWR|os.O_APPEND, 0))
			require.Equal(t, "/data/deep/x", f.Name())
			info := must(f.Stat())
			require.True(t, info.ModTime().Equal(time.Now()), "a file has the time of the World, not %v", info.ModTime())
			must(f.WriteString(", and more"))
			check(f.Close())
			require.Equal(t, "of a, and more", string(must(os.ReadFile("/data/deep/../deep/x"))))
			_, err := os.Open("/data/nothing")
			require.EqualError(t, err, "open /data/nothing: no such file or directory")
			require.Len(t, must(os.ReadDir("/data/deep")), 1)

			check(os.Symlink("/data/deep/x", "/data/absolute"))
			check(os.Symlink("deep/x", "/data/relative"))
			require.Equal(t, "/data/deep/x", must(os.Readlink("/data/absolute")))
			check(os.Link("/data/deep/x", "/data/hard"))
			check(os.Truncate("/data/hard", 4))
			for _, name := range []string{"absolute", "relative", "hard"} {
				require.Equal(t, "of a", string(must(os.ReadFile("/data/"+name))))
			}
			require.True(t, os.SameFile(must(os.Stat("/data/hard")), must(os.Lstat("/data/deep/x"))))
			check(os.Chtimes("/data/hard", time.Time{}, time.Unix(7, 0)))
			require.EqualValues(t, 7, must(os.Stat("/data/hard")).ModTime().Unix())
			check(os.Chmod("/data/hard", 0o400))
			require.EqualValues(t, 0o400, must(os.Stat("/data/hard")).Mode())

			dir := must(os.MkdirTemp("", "x"))
			require.True(t, strings.HasPrefix(dir, os.TempDir()))
			temp := must(os.CreateTemp(dir, "y"))
			check(os.Rename(temp.Name(), filepath.Join(dir, "z")))
			must(temp.WriteString("still open"))
			check(temp.Close())
			root := must(os.OpenRoot(dir))
			require.Equal(t, "still open", string(must(root.ReadFile("z"))))
			check(root.WriteFile("w", []byte("by a root"), 0o600))
			check(root.Close())
			to := must(os.Create(filepath.Join(dir, "copy")))
			require.EqualValues(t, 9, must(to.ReadFrom(must(os.Open(filepath.Join(dir, "w"))))), "copy_file_range")
			check(to.Close())
			require.Equal(t, "by a root", string(must(os.ReadFile(filepath.Join(dir, "copy")))))
			check(os.RemoveAll(dir))
			_, err = os.Stat(dir)
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
		on(w.Node("b"), func() {
			_, err := os.Stat("/data/deep/x")
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
		_, err := os.Stat("/data/deep/x")
		require.ErrorIs(t, err, fs.ErrNotExist, "main belongs to no node")
	})
}

// A node reads the files of the machine that it does not have itself, and cannot change them.
func TestGuestFilesOfTheMachine(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	check(os.WriteFile(config, []byte("of the test"), 0o600))
	withFiles(t, 1, simulation.Options{}, func(w *simulation.World) {
		wd := must(os.Getwd())
		on(w.Node("a"), func() {
			require.Equal(t, wd, must(os.Getwd()))
			require.Contains(t, string(must(os.ReadFile("guest_files_linux_test.go"))), "TestGuestFilesOfTheMachine")
			require.Equal(t, "of the test", string(must(os.ReadFile(config))))
			_, err := os.OpenFile(config, os.O_RDWR, 0)
			require.ErrorIs(t, err, syscall.EROFS)
			require.ErrorIs(t, os.Remove(config), fs.ErrNotExist)
			require.ErrorIs(t, os.Mkdir(dir, 0o700), fs.ErrExist)
			check(os.WriteFile(filepath.Join(dir, "new"), []byte("of a"), 0o600))
			check(os.WriteFile(config, []byte("of a"), 0o600))
			require.Equal(t, "of a", string(must(os.ReadFile(config))))
			check(os.WriteFile("guest.tmp", nil, 0o600))
			must(must(os.OpenFile("/dev/null", os.O_WRONLY, 0)).WriteString("x"))
			check(os.Chdir(dir))
			require.Equal(t, "of a", string(must(os.ReadFile("new"))))
		})
		require.Equal(t, wd, must(os.Getwd()))
		require.Equal(t, "of the test", string(must(os.ReadFile(config))))
		for _, name := range []string{filepath.Join(dir, "new"), "guest.tmp"} {
			_, err := os.Stat(name)
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
	})
}

// A log that forgets to sync loses entries with the power, and not by kill -9. After kill -9, its entries are still not durable.
func TestGuestFilesWithoutPower(t *testing.T) {
	const entries = "0123456789"
	twice := func(n *simulation.Node) {
		n.Crash()
		on(n, func() { require.Equal(t, entries, string(must(os.ReadFile("/log")))) })
		n.PowerOff()
	}
	later := func(n *simulation.Node) {
		n.Crash()
		n.PowerOff()
	}
	for _, syncs := range []bool{true, false} {
		for name, crash := range map[string]func(*simulation.Node){"crash": (*simulation.Node).Crash, "power": (*simulation.Node).PowerOff, "both": twice, "later": later} {
			came := afterCrash(t, 20, simulation.Options{}, crash, func() {
				f := must(os.Create("/log"))
				check(f.Sync())
				syncDir("/")
				for _, c := range entries {
					must(f.WriteString(string(c)))
					if syncs {
						check(f.Sync())
					}
				}
			}, func() string { return string(must(os.ReadFile("/log"))) })
			if simulation.Nodes() {
				require.Equal(t, syncs || name == "crash", came[entries] == 20, "%s %v: %v", name, syncs, came)
			}
		}
	}
}

// Without a sync of its folder, the new name of a file may be lost. The file has the old or the new bytes, and after a sync of the folder the
// new ones.
func TestGuestFilesAreReplaced(t *testing.T) {
	for _, syncs := range []bool{true, false} {
		came := afterCrash(t, 20, simulation.Options{}, (*simulation.Node).PowerOff, func() {
			check(os.Mkdir("/d", 0o700))
			for _, text := range []string{"old", "new"} {
				f := must(os.Create("/d/temp"))
				must(f.WriteString(text))
				check(f.Sync())
				check(f.Close())
				check(os.Rename("/d/temp", "/d/f"))
				if syncs || text == "old" {
					syncDir("/d")
					syncDir("/")
				}
			}
		}, func() string { return string(must(os.ReadFile("/d/f"))) })
		if simulation.Nodes() {
			require.Equal(t, 20, came["old"]+came["new"])
			require.Equal(t, syncs, came["old"] == 0, came)
		}
	}
}

// On a disk that keeps names, a sync of a new file keeps its name. The same holds for the FS of a node.
func TestGuestFilesKeepTheirNames(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		came := afterCrash(t, 20, simulation.Options{KeepsNames: keeps}, (*simulation.Node).PowerOff, func() {
			check(must(os.Create("/f")).Sync())
		}, func() string {
			_, err := os.Stat("/f")
			return fmt.Sprint(err == nil)
		})
		if simulation.Nodes() {
			require.Equal(t, keeps, came["true"] == 20, came)
		}
	}
}

// kill -9 releases the locks of the program, also if the program has mapped the file. A program waits for a lock that is not free.
func TestGuestFilesAreLocked(t *testing.T) {
	withFiles(t, 1, simulation.Options{}, func(w *simulation.World) {
		n := w.Node("n")
		lock := func(how int) (*os.File, error) {
			f := must(os.OpenFile("/lock", os.O_CREATE|os.O_RDWR, 0o600))
			return f, syscall.Flock(int(f.Fd()), how)
		}
		on(n, func() {
			f, err := lock(syscall.LOCK_EX)
			check(err)
			check(f.Truncate(4096))
			must(syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ, syscall.MAP_SHARED))
			_, err = lock(syscall.LOCK_EX | syscall.LOCK_NB)
			require.ErrorIs(t, err, syscall.EWOULDBLOCK)
			go func(f *os.File) {
				time.Sleep(time.Second)
				check(syscall.Flock(int(f.Fd()), syscall.LOCK_UN))
			}(f)
			begin := time.Now()
			f, err = lock(syscall.LOCK_EX)
			check(err)
			must(syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ, syscall.MAP_SHARED))
			require.GreaterOrEqual(t, time.Since(begin), time.Second)
		})
		n.Crash()
		on(n, func() {
			_, err := lock(syscall.LOCK_EX | syscall.LOCK_NB)
			check(err)
		})
	})
}

// What was written through a mapping is a write that an msync makes durable.
func TestGuestFilesAreMapped(t *testing.T) {
	for _, syncs := range []bool{true, false} {
		came := afterCrash(t, 20, simulation.Options{}, (*simulation.Node).PowerOff, func() {
			f := must(os.Create("/f"))
			check(f.Truncate(1 << 30))
			check(f.Sync())
			syncDir("/")
			p := must(syscall.Mmap(int(f.Fd()), 0, 1<<30, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED))
			p[5000] = 'x'
			got := make([]byte, 1)
			must(f.ReadAt(got, 5000))
			require.Equal(t, "x", string(got))
			if syncs {
				check(msync(p))
			}
			p[1<<29] = 'y'
			check(f.Close())
		}, func() string {
			f, got := must(os.Open("/f")), make([]byte, 2)
			must(f.ReadAt(got[:1], 5000))
			must(f.ReadAt(got[1:], 1<<29))
			return string(bytes.ReplaceAll(got, []byte{0}, []byte(".")))
		})
		if simulation.Nodes() {
			require.Equal(t, syncs, came[".."]+came[".y"] == 0, came)
			require.NotZero(t, came["x."]+came[".."], came)
			require.NotZero(t, came["xy"], came)
		}
	}
}

// The disk of a node has the same faults for its files as for its FS.
func TestGuestFilesFail(t *testing.T) {
	withFiles(t, 1, simulation.Options{}, func(w *simulation.World) {
		n := w.Node("n")
		on(n, func() {
			f := must(os.Create("/f"))
			must(f.Write(make([]byte, 510)))
			n.FullDisk(true)
			k, err := f.WriteString("abc")
			require.Equal(t, 2, k) // what fits into the sector
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.EqualValues(t, 512, must(f.Stat()).Size())
			_, err = f.WriteString("d")
			require.ErrorIs(t, err, syscall.ENOSPC)
			must(f.WriteAt([]byte("A"), 0))
			_, err = os.Create("/g")
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.ErrorIs(t, os.Mkdir("/d", 0o700), syscall.ENOSPC)
			require.ErrorIs(t, syscall.Fallocate(int(f.Fd()), 0, 0, 600), syscall.ENOSPC)
			n.FullDisk(false)
			check(syscall.Fallocate(int(f.Fd()), 0, 0, 600))
			require.EqualValues(t, 600, must(f.Stat()).Size())

			w.SetFaults(simulation.Faults{Write: 1})
			_, err = f.WriteAt([]byte("B"), 0)
			require.ErrorIs(t, err, syscall.EIO)
			w.SetFaults(simulation.Faults{Sync: 1})
			require.ErrorIs(t, f.Sync(), syscall.EIO)
			w.SetFaults(simulation.Faults{})
			check(f.Sync())
			syncDir("/")
			n.SlowDisk(time.Second)
			begin := time.Now()
			for range 10 {
				check(syscall.Fdatasync(int(f.Fd())))
			}
			require.Greater(t, time.Since(begin), time.Second)
			n.SlowDisk(0)
			must(f.WriteAt(make([]byte, 512), 0))
			check(f.Sync())
			n.RotDisk(1)
			p := make([]byte, 512)
			must(f.ReadAt(p, 0))
			require.NotEqual(t, make([]byte, 512), p)
		})
	})
	came := afterCrash(t, 20, simulation.Options{}, (*simulation.Node).PowerOff, func() {
		f := must(os.Create("/f"))
		syncDir("/")
		must(f.WriteString("abc"))
		check(f.Sync())
	}, func() string { return string(must(os.ReadFile("/f"))) })
	if simulation.Nodes() {
		require.Equal(t, map[string]int{"abc": 20}, came)
	}
}

// A seed decides which files survive, and a second run has the same trace. Goroutines of a node share its files in an order that the seed
// decides.
func TestGuestFilesAgain(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	simulation.Calm(t)
	states := map[string]bool{}
	for seed := range uint64(10) {
		run := func() (simulation.Report, string) {
			state := ""
			r := simulation.RunGuests(t, simulation.Options{Seed: seed + 1, Preempt: true}, func(_ context.Context, w *simulation.World) error {
				for round := range 3 {
					for _, name := range []string{"a", "b"} {
						n := w.Node(name)
						on(n, func() {
							done := make(chan bool)
							for i := range 3 {
								go func() {
									defer func() { done <- true }()
									f := must(os.OpenFile("/log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600))
									for k := range 5 {
										must(fmt.Fprintf(f, "%d%d%d ", round, i, k))
										if k == i {
											check(f.Sync())
										}
									}
									check(os.WriteFile(fmt.Sprint("/", round, i), nil, 0o600))
								}()
							}
							for range 3 {
								<-done
							}
							state += string(must(os.ReadFile("/log"))) + fmt.Sprint(must(os.ReadDir("/"))) + "\n"
						})
						n.PowerOff()
					}
				}
				return nil
			})
			require.NoError(t, r.Err)
			return r, state
		}
		first, state := run()
		second, again := run()
		require.Equal(t, state, again)
		require.Equal(t, first.Hash, second.Hash)
		states[state] = true
	}
	require.Greater(t, len(states), 5)
}

// A run leaves no folder behind, and a folder that a dead process has left is removed.
func TestGuestFilesAreRemoved(t *testing.T) {
	folders := func() []string { return must(filepath.Glob("/dev/shm/braid-node-*")) }
	before := folders()
	withFiles(t, 3, simulation.Options{}, func(w *simulation.World) {
		on(w.Node("n"), func() { check(os.WriteFile("/f", nil, 0o600)) })
	})
	require.Subset(t, before, folders())
}

// The bytes of a call may be on the stack of the program, which grows in the call.
func TestGuestFilesOnTheStack(t *testing.T) {
	withFiles(t, 1, simulation.Options{}, func(w *simulation.World) {
		on(w.Node("n"), func() {
			f := must(os.OpenFile("/f", os.O_CREATE|os.O_RDWR|os.O_SYNC, 0o600))
			fd, done := int(f.Fd()), make(chan bool)
			for depth := range 400 {
				go func() {
					done <- deep(depth, func() bool {
						var p, q [128]byte
						var st syscall.Stat_t
						p[0], p[127] = byte(depth), 1
						must(syscall.Pwrite(fd, p[:], int64(depth)*128))
						must(syscall.Pread(fd, q[:], int64(depth)*128))
						check(syscall.Fstat(fd, &st))
						return p == q && st.Size >= int64(depth+1)*128
					})
				}()
				require.True(t, <-done, depth)
			}
		})
	})
}

func deep(depth int, f func() bool) bool {
	var p [40]byte
	if depth == 0 {
		return f()
	}
	p[depth%40] = 1
	return deep(depth-1, f) && p[depth%40] == 1
}
