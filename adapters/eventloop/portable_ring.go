//go:build !linux || braid_portable

package eventloop

// A ring is none here.
type ring struct{}

func (*ring) turn() bool  { return false }
func (*ring) rests() bool { return true }

func (l *Loop) makeRings() error { return nil }
func (r *reactor) endRing()      {}

func (f *File) viaRing(uint8, []byte, int64) (int, error) { return 0, errRefused }
