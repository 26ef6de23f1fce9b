package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if os.Getenv("ORDERS_ROLE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Each order is either confirmed once, or a dead letter for a known reason, and no goods are lost, although one shop is killed
// and another one is replaced.
func TestOrders(t *testing.T) {
	b, why, err := run(t.TempDir())
	require.NoError(t, err)
	for id, o := range b.Orders {
		require.Equal(t, order(id), o)
		require.NotEqual(t, 7, id%20, "its card was declined")
		b.Left[o.Item] += o.N
	}
	require.Equal(t, stock(), b.Left)
	require.Equal(t, orders, len(b.Orders)+why["card declined"]+why["chair: sold out"]+why["table: sold out"], why)
}
