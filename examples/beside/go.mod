module github.com/braidgo/braid/examples/beside

go 1.26.0

require (
	github.com/braidgo/braid v0.1.0
	github.com/sourcegraph/conc v0.3.0
	golang.org/x/sync v0.24.0
)

require (
	github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect
	go.uber.org/atomic v1.7.0 // indirect
	go.uber.org/multierr v1.9.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/braidgo/braid => ../..
