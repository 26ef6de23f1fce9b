package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, pulls...) }

// Mistakes in a Kill of a task that runs the body of a Pull, in which another Task is bound.
var pulls = []mutation.Mutant{
	{"a Kill does not see a Bind in a Pull", "suspend/bind.go", "	if in := top.via.top(); ⟦in != nil⟧ {", "false", "TestKillInAPull", "internal/idle"},
	{"a Pull in a Pull is not found", "suspend/pull.go", "		b.via.calls = p\n", "		if !IS {\n			b.via.calls = p\n		}\n", "TestKillInAPull", "internal/idle"},
	{"a Pull lends the binding that its caller had first", "suspend/pull.go", "	p.bound = placed()\n", "	if p.bound = placed(); IS {\n		p.bound = current()\n	}\n", "TestPullYieldOfAnOuterPull", "suspend"},
	{"a task runs the Pull that it has left", "suspend/pull.go", "	p.bound.callBody(nil)\n", "	if !IS {\n		p.bound.callBody(nil)\n	}\n", "TestKillInAPull", "internal/idle"},
	{"a Bind in a Pull takes no Kill", "suspend/kill.go", "	if by := before.lender(); ⟦by != nil && by.task != nil⟧ {\n		b.shields", "false", "TestKillAroundABind", "internal/idle"},
	{"a Bind in a Pull takes its Kill along", "suspend/kill.go", "	if by := before.lender(); ⟦by != nil && by.task != nil⟧ {\n		if by == before", "false", "TestKillAroundABind", "internal/idle"},
	{"a body that yields takes a Kill along", "suspend/pull.go", "			in.passKill(b)\n", "			if !IS {\n				in.passKill(b)\n			}\n", "TestKillAroundABind", "internal/idle"},
	{"a body that goes on takes no Kill", "suspend/pull.go", "			b.passKill(in)\n", "			if !IS {\n				b.passKill(in)\n			}\n", "TestKillAroundABind", "internal/idle"},
	{"a body that goes on takes no Shield", "suspend/pull.go", "	p.lendShield(⟦b != nil && b.shielded()⟧)\n", "false", "TestKillAroundABind", "internal/idle"},
	{"a body loses its own Shield", "suspend/kill.go", "			b.shields = b.shields&own | lentIf(around)\n", "			if b.shields = b.shields&own | lentIf(around); IS {\n				b.shields = lentIf(around)\n			}\n", "TestShieldOfABody", "internal/idle"},
	{"a body in a Shield of its caller has none of its own", "suspend/kill.go", "b.task == nil && b.via == nil || ⟦b.shields&own != 0⟧ {", "b.lender() != nil && b.lender().shielded()", "TestShieldOfABody", "internal/idle"},
	{"the Shield of a body without a Bind is not found", "suspend/kill.go", "		found |= in.shields\n", "		if !IS {\n			found |= in.shields\n		}\n", "TestShieldOfABody", "internal/idle"},
	{"a body keeps the Shield of an earlier caller", "suspend/pull.go", "	p.lendShield(b != nil && b.shielded())\n", "	if b != nil && b.shielded() || !IS {\n		p.lendShield(b != nil && b.shielded())\n	}\n", "TestKillAroundABind", "internal/idle"},
	{"a Bind keeps the Shield of an earlier caller", "suspend/kill.go", "			before.shields = before.shields&own | b.shields&lent", "			if !IS {\n				before.shields = before.shields&own | b.shields&lent\n			}", "TestShieldOfABody", "internal/idle"},
	{"a Bind loses the Shield around it", "suspend/kill.go", "		b.shields = before.shields\n", "		if !IS {\n			b.shields = before.shields\n		}\n", "TestShieldOfABody", "internal/idle"},
}
