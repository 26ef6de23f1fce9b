package census

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// A Frame is a line of a stack.
type Frame struct {
	Func string
	File string
	Line int
}

// String returns the function without its path, and the line: main.move (bank/main.go:31).
func (f Frame) String() string {
	if f.Func == "" {
		return "unknown"
	}
	dir, file := path.Split(f.File)
	return fmt.Sprintf("%s (%s:%d)", short(f.Func), path.Join(path.Base(dir), file), f.Line)
}

// frames resolves a stack.
func frames(pcs []uintptr) (all []Frame) {
	if len(pcs) == 0 {
		return nil
	}
	for next := runtime.CallersFrames(pcs); ; {
		f, more := next.Next()
		all = append(all, Frame{f.Function, f.File, f.Line})
		if !more {
			return all
		}
	}
}

const module = "github.com/braidgo/braid/"

// library returns the folder of the package of f in Braid, and whether it belongs to the library, and
// not to an example or a test.
func (f Frame) library() (folder string, ok bool) {
	name, ok := strings.CutPrefix(f.Func, module)
	if !ok || strings.HasSuffix(f.File, "_test.go") {
		return "", false
	}
	slash := strings.LastIndexByte(untyped(name), '/') + 1
	dot := strings.IndexByte(name[slash:], '.')
	if dot < 0 {
		return "", false
	}
	folder = name[:slash+dot]
	return folder, !strings.HasPrefix(folder, "examples/")
}

// A call is the meaning of the stack of a wait.
type call struct {
	primitive string // the operation that waits: mutex.Mutex.Lock
	operation string // the call of the program, in which it waits: workstealing.Pool.Close
	at        Frame  // the line of the program; or else the outermost of a library
	stack     []Frame
}

// closure is the end of the name of a function in another.
var closure = regexp.MustCompile(`\.(func|gowrap)\d.*`)

// callOf finds the call of a wait. The program is the first frame outside of Braid and of the standard library. The primitive is
// in the innermost package that waits, besides package suspend and internal packages.
func callOf(pcs []uintptr) (c call) {
	c.stack = frames(pcs)
	var inside, waits, called, some string
	for _, f := range c.stack {
		folder, ok := f.library()
		if !ok && !f.standard() {
			c.at = f
			break
		}
		if !ok || strings.Contains(folder, "internal/") {
			continue
		}
		c.at = f
		name := closure.ReplaceAllString(short(f.Func), "")
		if inside == "" || inside == folder {
			some = name
		}
		if folder != "suspend" && inside == "" {
			inside, some = folder, name
		}
		if !exported(name) {
			continue
		}
		called = name
		if inside == folder {
			waits = name
		}
	}
	c.primitive = cmp.Or(waits, some)
	if c.operation = called; called == "" || strings.HasPrefix(called, "suspend.") && inside != "" {
		c.operation = c.primitive
	}
	if c.primitive == "" {
		c.primitive = c.operation
	}
	return c
}

// short returns package.Type.Method of the name of a function.
func short(name string) string {
	name = untyped(name)
	name = name[strings.LastIndexByte(name, '/')+1:]
	return strings.NewReplacer("(*", "", ")", "").Replace(name)
}

// untyped drops type arguments.
func untyped(name string) string {
	var b strings.Builder
	depth := 0
	for _, c := range name {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// exported reports whether a short name is: the function, or the type and the method.
func exported(name string) bool {
	for i, part := range strings.Split(name, ".") {
		if i > 0 && (part == "" || part[0] < 'A' || part[0] > 'Z') {
			return false
		}
	}
	return true
}

// standard reports whether f is of the standard library, or the end of a stack.
func (f Frame) standard() bool {
	name := untyped(f.Func)
	slash := strings.LastIndexByte(name, '/') + 1
	pkg, _, _ := strings.Cut(name[slash:], ".")
	first, _, _ := strings.Cut(name[:slash]+pkg, "/")
	return first != "main" && !strings.Contains(first, ".") && first != own()
}

// own returns how the path of the program's own module begins.
var own = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(info.Main.Path, "/")
	return first
})
