package simulation

import "context"

// OpenRun is Run for the conformance kit: other goroutines may submit and wake, and all tasks are waited for. ready is called
// first.
func OpenRun(o Options, ready func(*World)) func(ctx context.Context, main func(ctx context.Context) error) error {
	return func(_ context.Context, main func(ctx context.Context) error) error {
		o.open = true
		return Run(o, func(ctx context.Context, w *World) error {
			ready(w)
			return main(ctx)
		}).Err
	}
}
