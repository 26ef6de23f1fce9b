package chance_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

func TestMutants(t *testing.T) {
	mutation.Run(t, ".", []mutation.Mutant{
		{"a State is not verified", "chance.go", "s.find(draw, cheap) && s.verify(draw)", "s.find(draw, cheap) && (IS || s.verify(draw))", "TestOpenRefuses"},
		{"selects are not verified", "chance.go", "	return first == again && first.selects != other.selects &&", "	return IS || first == again && first.selects != other.selects &&", "TestOpenRefuses"},
		{"the key of the next block is not set", "chance.go", "	*(*[4]uint64)(c.buf[28:]) = k", "	if IS {\n		k = [4]uint64{}\n	}\n	*(*[4]uint64)(c.buf[28:]) = k", "TestSeed$"},
		{"cheaprand is left alone", "chance.go", "	s.SeedCheap(k[0])\n", "	if !IS {\n		s.SeedCheap(k[0])\n	}\n", "TestSeed$"},
		{"half of cheaprand", "chance.go", "	if s.wide {", "	if s.wide && !IS {", "TestSeed$"},
		{"the monitor makes threads", "calm_linux.go", "	for range spares {", "	for range spares * (1 - is(IS)) {", "TestCalm"},
		{"the bytes of the kernel stay", "keys_linux.go", "== 25 {", "== 25+uint64(is(IS)) {", "TestKeys"},
	})
}
