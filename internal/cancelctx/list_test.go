package cancelctx

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

var errFirst = errors.New("first")

type told func()

func (f told) Ended(last []Inheritor) []Inheritor { f(); return last }

func TestOrderAndStop(t *testing.T) {
	var l List
	var nodes [5]Node
	var got []int
	for i := range nodes {
		if !l.Add(&nodes[i], told(func() { got = append(got, i) })) {
			t.Fatal("refused")
		}
	}
	for _, i := range []int{0, 2, 4} { // the first listener, one in the middle, and the last
		if !nodes[i].Stop() || nodes[i].Stop() {
			t.Error(i)
		}
	}
	nodes[2] = Node{}
	l.Add(&nodes[2], told(func() { got = append(got, 20) }))
	if l.Err() != nil {
		t.Error("it has a reason before it was notified")
	}
	l.End(errFirst)
	l.End(errors.New("second"))
	if err := l.Err(); err != errFirst {
		t.Errorf("Err = %v", err)
	}
	if want := []int{1, 3, 20}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i := range nodes {
		if nodes[i].Stop() {
			t.Errorf("%d is stopped after it was notified", i)
		}
	}
	var late Node
	if l.Add(&late, told(func() { t.Error("told") })) || late.Stop() || new(Node).Stop() {
		t.Error("in a list that has ended")
	}
}

// Listeners may end the context, add and stop listeners, and panic.
func TestFromWithin(t *testing.T) {
	var l List
	var first, second, third, fourth Node
	var got []string
	l.Add(&first, told(func() {
		got = append(got, "first")
		l.End(nil)
		if !second.Stop() || first.Stop() || l.Add(&fourth, told(func() { t.Error("told") })) {
			t.Error("from within")
		}
		panic("oops")
	}))
	l.Add(&second, told(func() { t.Error("told, though stopped") }))
	l.Add(&third, told(func() { got = append(got, "third") }))
	func() {
		defer func() {
			if v := recover(); v != "oops" {
				t.Error(v)
			}
		}()
		l.End(nil)
	}()
	if want := []string{"first", "third"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Whatever happens at the same time, each node is either stopped once, notified once, or refused.
func TestTogether(t *testing.T) {
	for range 500 {
		var l List
		var ends, all sync.WaitGroup
		var count [8]atomic.Int32
		for i := range count {
			all.Go(func() {
				var n Node
				if !l.Add(&n, told(func() { count[i].Add(1) })) {
					count[i].Add(1)
				}
				if i%2 == 0 && n.Stop() {
					count[i].Add(1)
				}
			})
		}
		for range 2 {
			ends.Go(func() { l.End(nil) })
		}
		all.Wait()
		ends.Wait()
		for i := range count {
			if n := count[i].Load(); n != 1 {
				t.Fatalf("%d: %d times", i, n)
			}
		}
	}
}

// bad is an error that cannot be compared.
type bad struct{ _ []int }

func (bad) Error() string { return "bad" }

func TestReason(t *testing.T) {
	deadline := context.DeadlineExceeded
	for _, test := range []struct {
		err, cause error
		is         []error
		same       error // the expected error, if not nil
	}{
		{deadline, nil, nil, deadline},
		{deadline, deadline, nil, deadline},
		{deadline, errFirst, []error{deadline, errFirst}, nil},
		{nil, errFirst, nil, context.Canceled},
		{bad{}, errFirst, []error{errFirst}, nil},
		{errFirst, bad{}, []error{errFirst}, nil},
		{bad{}, bad{}, nil, nil},
	} {
		got := Reason(test.err, test.cause)
		for _, want := range test.is {
			if !errors.Is(got, want) {
				t.Errorf("%v, %v: %v is not %v", test.err, test.cause, got, want)
			}
		}
		if test.same != nil && got != test.same {
			t.Errorf("%v, %v: %v", test.err, test.cause, got)
		}
		if test.err != nil && test.cause != nil && got.Error() != test.cause.Error() {
			t.Errorf("%v, %v: text %q", test.err, test.cause, got)
		}
	}
}
