package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type client struct {
	t *testing.T
	net.Conn
	in *bufio.Scanner
}

func (c client) say(format string, args ...any) {
	_, err := fmt.Fprintf(c, format+"\n", args...)
	require.NoError(c.t, err)
}

func (c client) hears(want ...string) {
	c.t.Helper()
	for _, w := range want {
		require.True(c.t, c.in.Scan(), c.in.Err())
		require.Equal(c.t, w, c.in.Text())
	}
}

func TestChat(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	address, served := make(chan net.Addr, 1), make(chan error, 1)
	go func() { served <- run(ctx, "127.0.0.1:0", func(a net.Addr) { address <- a }) }()
	a := <-address
	connect := func(name string) client {
		c, err := net.Dial("tcp", a.String())
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
		x := client{t, c, bufio.NewScanner(c)}
		x.say(name)
		x.hears(name + " has come")
		return x
	}
	ada, ben := connect("ada"), connect("ben")
	ada.hears("ben has come")
	ada.say("hello")
	ada.hears("ada: hello")
	ben.hears("ada: hello")
	ben.say("/who")
	ben.hears("ada, ben")
	ben.say("/join tea")
	ada.hears("ben has left")
	ben.hears("ben has come")
	ada.say("/who")
	ada.hears("ada")
	ada.say("/join tea")
	ada.hears("ada has come")
	ben.hears("ada has come")
	require.NoError(t, ada.Close())
	ben.hears("ada has left")

	// A member that does not read is disconnected, and does not block the others.
	slow := connect("slow")
	ben.say("/join lobby")
	ben.hears("ben has come")
	slow.hears("ben has come")
	long := fmt.Sprintf("%060000d", 0)
	for i := range 2000 {
		ben.say("%s", long)
		if !ben.in.Scan() {
			t.Fatal(ben.in.Err())
		}
		if ben.in.Text() == "slow has left" {
			break
		}
		require.Less(t, i, 1999)
	}
	stop()
	require.NoError(t, <-served)
	require.NoError(t, ben.Close())
	require.NoError(t, slow.Close())
}
