package eventloop_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/promise"
)

// The program has a socket for packets, and a peer that is connected to it.
func ExampleLoop_ListenPacket() {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		panic(err)
	}
	defer loop.Close()
	socket, err := loop.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	_ = loop.Go(func() {
		peer, err := loop.Dial(context.Background(), "udp", socket.LocalAddr().String())
		if err != nil {
			panic(err)
		}
		defer peer.Close()
		fmt.Fprint(peer, "a packet")
	})
	p := make([]byte, 1500)
	n, _, err := socket.ReadFrom(p)
	fmt.Println(string(p[:n]), err)
	// Output: a packet <nil>
}

// Several tasks read parts of a file at the same time.
func ExampleLoop_OpenFile() {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		panic(err)
	}
	defer loop.Close()
	file, err := loop.OpenFile(filepath.Join(os.TempDir(), "braid-example"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		panic(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := file.WriteAt([]byte("a part, another."), 0); err != nil {
		panic(err)
	}
	first, second := promise.New[string](), promise.New[string]()
	for i, part := range []*promise.Promise[string]{first, second} {
		_ = loop.Go(func() {
			p := make([]byte, 8)
			if _, err := file.ReadAt(p, int64(8*i)); err != nil {
				panic(err)
			}
			part.Fill(string(p))
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, _ := first.Await(ctx)
	b, _ := second.Await(ctx)
	head := make([]byte, 7)
	_, err = io.NewSectionReader(file.WithContext(ctx), 8, 100).Read(head)
	fmt.Printf("%s|%s|%s|%v\n", a, b, head, err)
	// Output: a part, |another.|another|<nil>
}

// Adopt takes a pipe that another package has opened. A header and a file are written to it; over TCP, the file would not pass
// through the memory of the process.
func ExampleLoop_Adopt() {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		panic(err)
	}
	defer loop.Close()
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	_ = loop.Go(func() {
		c, err := loop.Adopt(w)
		if err != nil {
			panic(err)
		}
		defer c.Close()
		_, _ = c.WriteBuffers(&net.Buffers{[]byte("a file "), []byte("of one line: ")})
		f, err := os.Open("testdata/line.txt")
		if err != nil {
			panic(err)
		}
		defer f.Close()
		_, _ = io.Copy(c, f)
	})
	all, err := io.ReadAll(r)
	fmt.Println(string(all), err)
	// Output: a file of one line: hello <nil>
}
