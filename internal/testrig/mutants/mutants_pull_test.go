package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, pulls...) }

// A Kill of a task that runs the body of a Pull, in which another Task is bound.
var pulls = []mutation.Mutant{
	{"a Kill does not see a Bind in a Pull", "suspend/bind.go", "	if in := top.via.top(); ⟦in != nil⟧ {", "false", "TestKillInAPull", "idle"},
	{"a Pull in a Pull is not found", "suspend/pull.go", "		b.via.calls = p\n", "		if !IS {\n			b.via.calls = p\n		}\n", "TestKillInAPull", "idle"},
	{"a Pull lends the binding that its caller had first", "suspend/pull.go", "	p.bound = placed()\n", "	if p.bound = placed(); IS {\n		p.bound = current()\n	}\n", "TestPullYieldOfAnOuterPull", "suspend"},
	{"a task runs the Pull that it has left", "suspend/pull.go", "	p.bound.call(nil)\n", "	if !IS {\n		p.bound.call(nil)\n	}\n", "TestKillInAPull", "idle"},
	{"a Bind in a Pull takes no Kill", "suspend/kill.go", "	if before = before.lender(); ⟦before != nil && before.task != nil⟧ {\n		b.shielded", "false", "TestKillAroundABind", "idle"},
	{"a Bind in a Pull takes its Kill along", "suspend/kill.go", "	if before = before.lender(); ⟦before != nil && before.task != nil⟧ {\n		b.passKill", "false", "TestKillAroundABind", "idle"},
	{"a body that yields takes a Kill along", "suspend/pull.go", "			in.passKill(b)\n", "			if !IS {\n				in.passKill(b)\n			}\n", "TestKillAroundABind", "idle"},
	{"a body that goes on takes no Kill", "suspend/pull.go", "			b.passKill(in)\n", "			if !IS {\n				b.passKill(in)\n			}\n", "TestKillAroundABind", "idle"},
	{"a body that goes on takes no Shield", "suspend/pull.go", "			in.shielded = in.shielded || b.shielded\n", "			in.shielded = in.shielded || b.shielded && !IS\n", "TestKillAroundABind", "idle"},
	{"a body keeps the Shield of its caller", "suspend/pull.go", "			in.shielded = in.shielded && !b.shielded\n", "			in.shielded = in.shielded && (!b.shielded || IS)\n", "TestKillAroundABind", "idle"},
}
