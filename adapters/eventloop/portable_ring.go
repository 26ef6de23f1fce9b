//go:build !linux || braid_portable

package eventloop

import (
	"io/fs"
	"os"
)

const noWait = 0

// A ring does nothing in this build, because io_uring is used only on Linux.
type ring struct{}

func (*ring) submitAndReap() bool { return false }
func (*ring) rests() bool         { return true }

func (l *Loop) makeRings() error { return nil }
func (r *reactor) endRing()      {}

func (l *Loop) openViaRing(string, int, fs.FileMode) (*os.File, error) { return nil, errRefused }

func (f *File) viaRing(uint8, []byte, int64) (int, error) { return 0, errRefused }
