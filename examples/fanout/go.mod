module github.com/braidgo/braid/examples/fanout

go 1.26.0

require github.com/braidgo/braid v0.1.0

require (
	github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/braidgo/braid => ../..
