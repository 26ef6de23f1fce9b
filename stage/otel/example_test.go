package otel_test

import (
	"fmt"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/stage/otel"
	"github.com/braidgo/braid/suspend/sched"
)

func ExampleRegisterSchedulers() {
	pool := workstealing.New(workstealing.Options{Workers: 2})
	defer pool.Close()
	meter := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())).Meter("server")
	r, err := otel.RegisterSchedulers(meter, map[string]interface{ Stats() sched.Stats }{"pool": pool})
	fmt.Println(err, r.Unregister())
	// Output: <nil> <nil>
}
