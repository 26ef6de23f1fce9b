package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The table is made in virtual time, so it does not depend on the machine.
func TestTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		serve, s := staged()
		table(context.Background(), &out, serve, []float64{0.5, 5}, time.Second)
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		t.Log("\n" + out.String())
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if f := strings.Fields(lines[1]); f[len(f)-2] > "0.20" {
			t.Errorf("with a goroutine per request, %s of the answers are good at 5x", f[len(f)-2])
		}
		if f := strings.Fields(lines[2]); f[len(f)-2] < "0.90" {
			t.Errorf("with the stage, %s of the answers are good at 5x", f[len(f)-2])
		}
	})
}
