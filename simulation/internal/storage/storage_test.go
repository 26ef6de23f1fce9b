package storage

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// crashes builds a disk with each of many seeds, crashes it, and counts what look returns.
func crashes(build func(d *Disk), look func(d *Disk) string) map[string]int {
	came := map[string]int{}
	for seed := range 200 {
		source := draws.Source(seed)
		d := new(Disk)
		build(d)
		d.Crash(&source)
		came[look(d)]++
	}
	return came
}

func content(f *File) string {
	p := make([]byte, f.Size())
	return string(p[:f.Read(p, 0)])
}

// A crash keeps names and bytes that were synced. It keeps or loses bytes that were not.
func TestSyncedBytesSurvive(t *testing.T) {
	came := crashes(func(d *Disk) {
		f := d.Create("f")
		f.Write([]byte("first"), 0)
		f.Sync()
		d.Sync()
		f.Write([]byte("FI"), 0)
		require.Equal(t, "FIrst", content(f))
		require.False(t, f.IsSynced())
	}, func(d *Disk) string { return content(d.Find("f")) })
	require.Len(t, came, 2)
	require.NotZero(t, came["first"])
	require.NotZero(t, came["FIrst"])
}

// A crash keeps a prefix of the changes to names.
func TestAPrefixOfTheNamesSurvives(t *testing.T) {
	came := crashes(func(d *Disk) {
		d.Create("a").Sync()
		d.Sync()
		d.Create("b")
		d.Rename("a", "c")
		d.Remove("b")
		require.Equal(t, []string{"c"}, d.Names())
	}, func(d *Disk) string {
		var all string
		for _, name := range d.Names() {
			all += name
			require.NotNil(t, d.Find(name))
		}
		return all
	})
	var states []string
	for state := range came {
		states = append(states, state)
	}
	require.ElementsMatch(t, []string{"a", "ab", "bc", "c"}, states)
}

// A crash keeps or loses whole sectors, wherever a write begins.
func TestSectorsAreWhole(t *testing.T) {
	mixed := 0
	crashes(func(d *Disk) {
		f := d.Create("f")
		f.Write(make([]byte, 4*Sector), 0)
		f.Sync()
		d.Sync()
		f.Write(bytes.Repeat([]byte{1}, 3*Sector), 100)
	}, func(d *Disk) string {
		f := d.Find("f")
		p := make([]byte, f.Size())
		f.Read(p, 0)
		p = p[100 : 100+3*Sector]
		kept := map[bool]int{}
		for at := 0; at < len(p); {
			end := min(len(p), at+Sector-(at+100)%Sector)
			require.Len(t, slices.Compact(slices.Clone(p[at:end])), 1, "a sector is torn")
			kept[p[at] == 1]++
			at = end
		}
		if len(kept) == 2 {
			mixed++
		}
		return ""
	})
	require.NotZero(t, mixed)
}

// A write that was forgotten is in memory, and never becomes durable.
func TestForgottenWrites(t *testing.T) {
	came := crashes(func(d *Disk) {
		f := d.Create("f")
		f.Write([]byte("one"), 0)
		f.Forget()
		require.True(t, f.IsSynced())
		f.Sync()
		d.Sync()
		require.Equal(t, "one", content(f))
	}, func(d *Disk) string { return content(d.Find("f")) })
	require.Equal(t, map[string]int{"": 200}, came)
}

// A flipped bit stays flipped, even after a crash. Truncate makes a file shorter, or longer with zeros.
func TestFlipAndTruncate(t *testing.T) {
	came := crashes(func(d *Disk) {
		f := d.Create("f")
		f.Write([]byte("abc"), 0)
		f.Truncate(5)
		f.Truncate(4)
		f.Sync()
		d.Sync()
		f.Flip(0, 2)
		f.Write([]byte("zz"), 4)
		f.Flip(5, 1)
		f.Forget()
	}, func(d *Disk) string { return content(d.Find("f")) })
	require.Equal(t, map[string]int{"cbc\x00": 200}, came)
}

// names returns the paths of all files, sorted.
func names(f *File, path string) (all []string) {
	for _, name := range f.Names() {
		all = append(all, path+name)
		all = append(all, names(f.Find(name), path+name+"/")...)
	}
	return all
}

func tree(d *Disk) string { return strings.Join(names(d.Root(), ""), " ") }

// A sync of a folder keeps its names, and a file that is moved there has one name. It does not keep the folder's own name.
func TestASyncOfAFolder(t *testing.T) {
	came := crashes(func(d *Disk) {
		a, b := d.NewFolder(), d.NewFolder()
		d.Link(d.Root(), "a", a)
		d.Link(d.Root(), "b", b)
		d.SyncFolder(d.Root())
		d.Link(a, "f", d.NewFile())
		d.Link(a, "g", d.NewFile())
		d.Move(a, "f", b, "f")
		d.Link(a, "late", d.NewFile())
		d.SyncFolder(b)
		d.Unlink(a, "g")
	}, tree)
	require.ElementsMatch(t, []string{"a a/g b b/f", "a a/g a/late b b/f", "a a/late b b/f"}, slices.Collect(maps.Keys(came)))
	came = crashes(func(d *Disk) {
		a := d.NewFolder()
		d.Link(d.Root(), "a", a)
		d.Link(a, "f", d.NewFile())
		d.SyncFolder(a)
	}, tree)
	require.ElementsMatch(t, []string{"", "a a/f"}, slices.Collect(maps.Keys(came)), "the name of the folder is not durable")
}

// A sync of a file keeps its name if the disk has this property.
func TestASyncOfAFileKeepsItsName(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		came := crashes(func(d *Disk) {
			d.KeepsNames = keeps
			f := d.Create("f")
			f.Write([]byte("x"), 0)
			d.SyncFile(f)
		}, tree)
		require.Equal(t, keeps, came["f"] == 200, came)
	}
}

// A long file needs no memory where it is empty, and a crash may lose its length.
func TestALongFile(t *testing.T) {
	came := crashes(func(d *Disk) {
		f := d.Create("f")
		f.Truncate(1 << 40)
		f.Write([]byte("abc"), 5*block-1)
		require.Equal(t, "\x00abc\x00", string(bytesAt(f, 5*block-2, 5)))
		f.Truncate(5 * block)
		f.Truncate(1 << 40)
		require.Equal(t, "\x00a\x00\x00\x00", string(bytesAt(f, 5*block-2, 5)), "the end was cut off")
		f.Sync()
		d.Sync()
		f.Truncate(0)
	}, func(d *Disk) string {
		f := d.Find("f")
		n := 0
		for off, p := range f.Blocks {
			n++
			require.EqualValues(t, 4*block, off)
			require.EqualValues(t, 'a', p[block-1])
		}
		return fmt.Sprint(f.Size(), n)
	})
	require.ElementsMatch(t, []string{"1099511627776 1", "0 0"}, slices.Collect(maps.Keys(came)))
}

func bytesAt(f *File, off, n int64) []byte {
	p := make([]byte, n)
	return p[:f.Read(p, off)]
}
