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

// String returns the function without its path, and the line, as in main.move (bank/main.go:31).
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

// library returns the folder of f's package in Braid, and reports whether f belongs to the library rather than to an
// example or a test.
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

// A call describes the stack of a wait.
type call struct {
	primitive string // the operation that waits, such as mutex.Mutex.Lock
	operation string // the call in the program, such as workstealing.Pool.Close
	at        Frame  // the line of the program, or else the outermost line of the library
	stack     []Frame
}

// closure matches the end of the name of a function literal.
var closure = regexp.MustCompile(`\.(func|gowrap)\d.*`)

// callOf returns the call of a wait. The program's line is the first frame outside Braid and the standard library. The
// primitive belongs to the innermost package of Braid in the stack, except package suspend and internal packages.
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

// short converts the full name of a function to package.Type.Method.
func short(name string) string {
	name = untyped(name)
	name = name[strings.LastIndexByte(name, '/')+1:]
	return strings.NewReplacer("(*", "", ")", "").Replace(name)
}

// untyped returns name without type arguments.
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

// exported reports whether all parts of a short name after the package are exported.
func exported(name string) bool {
	for i, part := range strings.Split(name, ".") {
		if i > 0 && (part == "" || part[0] < 'A' || part[0] > 'Z') {
			return false
		}
	}
	return true
}

// standard reports whether f belongs to the standard library, or is the end of a stack.
func (f Frame) standard() bool {
	name := untyped(f.Func)
	slash := strings.LastIndexByte(name, '/') + 1
	pkg, _, _ := strings.Cut(name[slash:], ".")
	first, _, _ := strings.Cut(name[:slash]+pkg, "/")
	return first != "main" && !strings.Contains(first, ".") && first != own()
}

// own returns the first element of the path of the program's main module.
var own = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(info.Main.Path, "/")
	return first
})
