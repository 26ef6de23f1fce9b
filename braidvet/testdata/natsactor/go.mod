module github.com/braidgo/braid/actor/natsactor

go 1.26.0
