module github.com/braidgo/braid/examples/netpoll

go 1.26.0

require (
	github.com/braidgo/braid v0.1.0
	github.com/cloudwego/netpoll v0.7.2
)

require (
	github.com/bytedance/gopkg v0.1.1 // indirect
	github.com/cloudwego/gopkg v0.1.4 // indirect
	github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect
)

replace github.com/braidgo/braid => ../..
