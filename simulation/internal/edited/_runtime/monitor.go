package runtime

import (
	"internal/runtime/atomic"
	"unsafe"
)

// The monitor looks at the slice of a goroutine that has run for long, and at a system call.
var orderSlice struct {
	tick uint32
	cpu  int64
}

var orderCall struct {
	tick uint32
	when int64
	cpu  int64 // the thread's processor time at the first look after a millisecond, or -1
}

// orderHas reports whether gp has an order, or has one again after nodeInside. If another goroutine ran in between, the order of the two would
// depend on real time.
func orderHas(gp *g) bool { return gp.order.id != 0 || gp.order.later != 0 }

// orderMayPreempt reports whether the monitor may preempt the goroutine of pp, which has passed at least 10 ms of real time since the
// scheduler has run. An ordered goroutine is preempted after 200 ms of processor time, because it may wait in a loop without a point. A
// goroutine of a bubble is preempted after 5 s.
func orderMayPreempt(pp *p, since int64) bool {
	mp := pp.m.ptr()
	if mp == nil {
		return true
	}
	gp := mp.curg
	switch {
	case gp == nil:
		return true
	case gp.bubble != nil && !order:
		return since >= 5e9
	case !order || !orderHas(gp):
		return true
	}
	_, cpu := orderThread(mp.procid)
	if cpu < 0 {
		cpu = since
	}
	if orderSlice.tick != pp.schedtick {
		orderSlice.tick, orderSlice.cpu = pp.schedtick, cpu
		return false
	}
	if cpu-orderSlice.cpu < 200e6 {
		return false
	}
	atomic.Xadd(&orderSlices, 1)
	return true
}

// orderMayRetake reports whether the monitor may take the P of gp, which is in a system call: only if the thread sleeps in the kernel, or has
// had a second of processor time. The order would otherwise depend on the time that short calls take, which is long on a busy machine.
func orderMayRetake(pp *p, gp *g, now int64) bool {
	if !orderPicks || !orderHas(gp) {
		return true
	}
	if orderCall.tick != pp.syscalltick {
		orderCall.tick, orderCall.when, orderCall.cpu = pp.syscalltick, now, -1
		return false
	}
	since := now - orderCall.when
	if since < 1e6 {
		return false
	}
	state, cpu := orderThread(gp.m.procid)
	if orderCall.cpu < 0 {
		orderCall.cpu = cpu
	}
	return state == 'S' || cpu-orderCall.cpu > 1e9 || state == 0 && since > 20e6
}

// orderThread returns the state of a thread, and its processor time in ns, according to /proc. It returns 0 and -1 on systems without /proc.
func orderThread(id uint64) (state byte, cpu int64) {
	var name [64]byte
	var text [512]byte
	n := copy(name[:], "/proc/self/task/")
	n += orderPutNumber(name[n:], id, 10)
	copy(name[n:], "/stat")
	fd := open((*byte)(noescape(unsafe.Pointer(&name))), 0, 0)
	if fd < 0 {
		return 0, -1
	}
	got := int(read(fd, noescape(unsafe.Pointer(&text)), int32(len(text))))
	closefd(fd)
	at := got - 1
	for at >= 0 && text[at] != ')' { // the name of the program, in parentheses, may contain anything
		at--
	}
	if at < 0 {
		return 0, -1
	}
	field, ticks, number := 2, int64(0), int64(0)
	for _, c := range text[at+1 : got] {
		switch {
		case c == ' ':
			if field == 14 || field == 15 { // the ticks in user mode and in the kernel
				ticks += number
			}
			field, number = field+1, 0
		case field == 3:
			state = c
		case c >= '0' && c <= '9':
			number = number*10 + int64(c-'0')
		}
	}
	return state, ticks * 10e6
}
