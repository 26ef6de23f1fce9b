//go:build amd64 || arm64

package simulation

import (
	"errors"
	"syscall"
	"time"

	"github.com/braidgo/braid/simulation/internal/chance"
	"github.com/braidgo/braid/simulation/internal/volume"
)

// With the overlay, the calls for files of a guest on a node come to fileCall. A call is executed at once, on the goroutine of the guest,
// which keeps its P: to other guests, a call is like a computation. Only a sync waits, as in a disk.FS. The World learns of
// the changes at the end of the window.

func init() {
	if chance.Nodes() {
		chance.SetFiles(fileCall)
	}
}

// fileCall implements chance.FileCall.
func fileCall(trap uintptr, a *[6]uintptr, path, other string, data []byte, p any) (r uintptr, err syscall.Errno, done bool) {
	id := chance.Node()
	h := hostHere()
	if trap == syscall.SYS_CLOSE {
		if !volume.Closed(int(int32(a[0]))) || h == nil {
			return 0, 0, false
		}
		chance.SetNode(id | chance.Inside)
		defer chance.SetNode(id)
		return 0, asErrno(syscall.Close(int(int32(a[0])))), true
	}
	if h == nil {
		return 0, 0, false
	}
	g := h.n.world.guests
	for {
		var w volume.Wait
		if g.again(); g.over {
			g.endCall()
			return 0, syscall.EIO, true
		}
		chance.SetNode(id | chance.Inside)
		r, err, done, w = h.n.openVolume().Call(trap, a, path, other, data, p)
		chance.SetNode(id)
		if notes := h.n.files.notes; len(notes) > 0 {
			h.n.files.notes = nil
			g.ask(&h.n.host, func() { h.n.noteAll(notes) })
		}
		g.endCall()
		switch {
		case w.Again:
			time.Sleep(time.Millisecond)
		case w.Is():
			return h.sync(w)
		default:
			return r, err, done
		}
	}
}

func asErrno(err error) syscall.Errno {
	e := syscall.Errno(0)
	if err != nil && !errors.As(err, &e) {
		return syscall.EIO
	}
	return e
}

// sync waits for a sync of files, see volume.Wait.
func (h *Host) sync(w volume.Wait) (r uintptr, err syscall.Errno, done bool) {
	n := h.n
	_, _ = inTask(h, func() (none struct{}, _ error) {
		e := n.diskReady("sync", w.Name, h.boot, 0)
		if e == nil {
			e = n.slowly("sync", w.Name)
		}
		if err = asErrno(e); h.boot == n.boots && !n.dead {
			n.onVolume(func(v *volume.Volume) { r, err = v.EndSync(w, e) })
		}
		return none, nil
	})
	return r, err, true
}
