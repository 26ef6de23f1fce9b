package runner

import (
	"sync"
	"testing"
)

func push(in *Inbox, it *Item) bool { wake, _ := in.Push(it); return wake }

func newItems(n int) []*Item {
	s := make([]*Item, n)
	for i := range s {
		s[i] = new(Item)
	}
	return s
}

func TestInboxKeepsTheOrder(t *testing.T) {
	var in Inbox
	if !in.Empty() || in.Take() != nil {
		t.Error("a new inbox is not empty")
	}
	pushed := newItems(5)
	for _, it := range pushed {
		if push(&in, it) {
			t.Error("push asks for a wake-up, but the consumer does not sleep")
		}
	}
	it := in.Take()
	for i, want := range pushed {
		if it != want {
			t.Fatalf("item %d is another", i)
		}
		it = it.next
	}
	if it != nil {
		t.Error("too many")
	}
}

func TestInboxSleep(t *testing.T) {
	var in Inbox
	it := newItems(3)
	push(&in, it[0])
	if in.Sleep() {
		t.Error("fell asleep over an item")
	}
	in.Take()
	if !in.Sleep() || !in.Asleep() || !in.Empty() || in.Take() != nil {
		t.Error("asleep is empty, and not taken for an item")
	}
	if !push(&in, it[1]) {
		t.Error("the first one owes the wake-up")
	}
	if push(&in, it[2]) || in.Asleep() || in.Rouse() {
		t.Error("and nobody else does")
	}
	if first := in.Take(); first != it[1] || first.next != it[2] || it[2].next != nil {
		t.Error("not what was pushed")
	}
	if !in.Sleep() || !in.Rouse() || in.Asleep() || push(&in, it[0]) {
		t.Error("Rouse takes the debt back")
	}
}

// Every item comes out once, in the order of its producer, and each sleep is ended by exactly one wake-up.
func TestInboxStress(t *testing.T) {
	const producers, each = 4, 20_000
	type numbered struct {
		Item
		producer, n int
	}
	var in Inbox
	index := sync.Map{}
	wake := make(chan struct{}, 1)
	for p := range producers {
		go func() {
			for n := range each {
				it := &numbered{producer: p, n: n}
				index.Store(&it.Item, it)
				if push(&in, &it.Item) {
					select {
					case wake <- struct{}{}:
					default:
						t.Error("woken twice")
					}
				}
			}
		}()
	}
	var next [producers]int
	for got := 0; got < producers*each; {
		it := in.Take()
		if it == nil {
			if in.Sleep() {
				<-wake
			}
			continue
		}
		for ; it != nil; it = it.next {
			x, _ := index.LoadAndDelete(it)
			nb := x.(*numbered)
			if nb.n != next[nb.producer] {
				t.Fatalf("producer %d: item %d, want %d", nb.producer, nb.n, next[nb.producer])
			}
			next[nb.producer]++
			got++
		}
	}
}
