// The log, from which hunt makes its report.

package runtime

import "unsafe"

var (
	orderLogFD int32       = -1
	orderPCs   [24]uintptr // the calls that orderLogCalls has found
)

// orderLog writes a line: kind, id, count, value, and the text or the calls of the goroutine, as pairs of a function and a line of a file.
//
//	n  a test begins: its name            g  a go statement has started the goroutine with the id in value
//	q  a point                            r  a goroutine runs
//	p  it lets so many points pass        w  it will run last        s  it chooses a case
//	l  its first priority                 t  it stands still for so many ns
func orderLog(kind byte, gp *g, n uint32, value uint64, text string) {
	var line [256]byte
	i := orderPutHead(line[:], kind, gp, n, value)
	i += copy(line[i:len(line)-1], text)
	line[i] = '\n'
	write(uintptr(orderLogFD), noescape(unsafe.Pointer(&line)), int32(i+1))
}

// orderLogCalls is orderLog with the calls of the caller's goroutine.
func orderLogCalls(kind byte, gp *g, n uint32, value uint64) {
	var line [2048]byte
	i := orderPutHead(line[:], kind, gp, n, value)
	frames := CallersFrames(orderPCs[:Callers(4, orderPCs[:])])
	for more := true; more; {
		var f Frame
		f, more = frames.Next()
		if i+len(f.Function)+len(f.File)+32 < len(line) && f.Function != "" {
			i += copy(line[i:], f.Function)
			i += copy(line[i:], "\t")
			i += copy(line[i:], f.File)
			i += copy(line[i:], ":")
			i += orderPutNumber(line[i:], uint64(f.Line), 10)
			i += copy(line[i:], "\t")
		}
	}
	line[i] = '\n'
	write(uintptr(orderLogFD), noescape(unsafe.Pointer(&line)), int32(i+1))
}

func orderPutHead(line []byte, kind byte, gp *g, n uint32, value uint64) int {
	line[0], line[1] = kind, ' '
	i := 2
	for _, x := range [...]struct{ x, base uint64 }{{gp.order.id, 16}, {uint64(n), 10}, {value, 16}} {
		i += orderPutNumber(line[i:], x.x, x.base)
		i += copy(line[i:], " ")
	}
	return i
}

func orderPutNumber(b []byte, n, base uint64) int {
	var digits [20]byte
	i := len(digits)
	for {
		i--
		digits[i] = "0123456789abcdef"[n%base]
		if n /= base; n == 0 {
			return copy(b, digits[i:])
		}
	}
}
