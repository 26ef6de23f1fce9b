module github.com/braidgo/braid/examples/graphql

go 1.26.0

require (
	github.com/braidgo/braid v0.1.0
	github.com/graph-gophers/graphql-go v1.6.0
	github.com/graphql-go/graphql v0.8.1
)

require github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect

replace github.com/braidgo/braid => ../..
