module example

go 1.26.0

require (
	github.com/braidgo/braid v0.1.0
	github.com/braidgo/braid/actor/natsactor v0.1.0
	github.com/gin-gonic/gin v1.11.0
	github.com/gofiber/fiber/v2 v2.52.9
)

require (
	github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/braidgo/braid => ../..
	github.com/braidgo/braid/actor/natsactor => ./natsactor // the types only, as of the others below
	github.com/gin-gonic/gin => ./gin
	github.com/gofiber/fiber/v2 => ./fiber
)
