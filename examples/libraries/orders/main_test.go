package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("ORDERS_ROLE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Each order is either confirmed once, or dead for a good reason, and no goods are lost, although one shop is killed and another
// one is replaced.
func TestOrders(t *testing.T) {
	const orders = 600
	r, err := run(t.TempDir(), orders, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	all := r.Left
	for id, o := range r.Orders {
		if o != order(id) || o.ID%20 == 7 {
			t.Errorf("%d: %v", id, o)
		}
		all[o.Item] += o.N
	}
	for item, n := range stock(orders) {
		if all[item] != n {
			t.Errorf("%s: %d of %d", item, all[item], n)
		}
	}
	dead := 0
	for why, n := range r.Reasons {
		dead += n
		if why != errDeclined.Error() && !strings.HasSuffix(why, errSoldOut.Error()) {
			t.Errorf("%d are dead because: %s", n, why)
		}
	}
	if len(r.Orders)+dead != orders || len(r.Reasons) < 2 {
		t.Errorf("%d confirmed, %v dead", len(r.Orders), r.Reasons)
	}
}
