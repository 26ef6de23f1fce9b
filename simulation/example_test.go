package simulation_test

import (
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// During a partition, the bytes that are sent are held. Heal delivers them.
func ExampleWorld_Partition() {
	hello := func(c net.Conn, err error) error {
		if err != nil {
			return err
		}
		_, err = c.Write([]byte("hello"))
		return err
	}
	report := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		alice, bob := w.Node("alice"), w.Node("bob")
		ln, err := bob.Listen("tcp", ":80")
		if err != nil {
			return err
		}
		w.Partition([]string{"alice"}, []string{"bob"})
		w.AfterFunc(time.Minute, w.Heal)
		_ = alice.Go(func() { _ = hello(alice.Dial(ctx, "tcp", "bob:80")) })
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		b := make([]byte, 5)
		_, err = io.ReadFull(c, b)
		w.Log("%s", b)
		return err
	}, simulation.Options{Seed: 1})
	fmt.Println(report.Elapsed, report.Err)
	// Output: 1m0s <nil>
}

func ExampleNode_FullDisk() {
	report := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		n := w.Node("server")
		n.FullDisk(true)
		_, err := n.FS().Create("log")
		return err
	}, simulation.Options{Seed: 1})
	fmt.Println(report.Err)
	// Output:
	// create log: no space left on device
}

// A batch has ten elements, and in some runs one. The code under test gets its size from a function.
func ExampleWorld_Buggify() {
	small := 0
	for seed := range uint64(100) {
		simulation.Run(func(ctx context.Context, w *simulation.World) error {
			size := func() int {
				if w.Buggify("a batch of one") {
					return 1
				}
				return 10
			}
			for range 100 {
				if size() == 1 {
					small++
				}
			}
			return nil
		}, simulation.Options{Seed: seed + 1})
	}
	fmt.Println(small > 100 && small < 2500)
	// Output:
	// true
}

// Bytes and names that were synced survive a crash. Others survive with some seeds.
func ExampleNode_Crash() {
	survivors := func(seed uint64) (found []string) {
		simulation.Run(func(ctx context.Context, w *simulation.World) error {
			n := w.Node("server")
			save := func(name string, sync bool) {
				f, _ := n.FS().Create(name)
				_, _ = f.WriteAt([]byte("data"), 0)
				if sync {
					_ = f.Sync()
					_ = n.FS().Sync() // makes the name durable
				}
			}
			save("synced", true)
			save("not synced", false)
			n.Crash()
			n.Restart(func(ctx context.Context) {
				for _, name := range []string{"synced", "not synced"} {
					if _, err := n.FS().Open(name); err == nil {
						found = append(found, name)
					}
				}
			})
			return suspend.Sleep(ctx, time.Second)
		}, simulation.Options{Seed: seed})
		return found
	}
	seen := map[string]bool{}
	for seed := uint64(1); seed <= 20; seed++ {
		seen[strings.Join(survivors(seed), ", ")] = true
	}
	fmt.Println(seen)
	// Output: map[synced:true synced, not synced:true]
}

// In a bubble, package time uses the World's clock.
func ExampleRun_bubble() {
	bubble(func(t *testing.T) {
		report := simulation.Run(func(ctx context.Context, w *simulation.World) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour) // of package context
			defer cancel()
			return suspend.Sleep(ctx, 24*time.Hour)
		}, simulation.Options{Seed: 1, Bubble: true})
		fmt.Println(report.Elapsed, report.Err)
	})
	// Output: 1h0m0s context deadline exceeded
}

// bubble calls synctest.Test outside a test.
func bubble(f func(t *testing.T)) { inTest(func(t *testing.T) { synctest.Test(t, f) }) }

// inTest runs f once as a test, although the caller is not a test.
func inTest(f func(t *testing.T)) {
	var once sync.Once                     // RunTests runs a test as often as -count and -cpu say
	skip := flag.Lookup("test.skip").Value // the name of the test must pass -skip
	defer func(was string) { _ = skip.Set(was) }(skip.String())
	_ = skip.Set("")
	v := flag.Lookup("test.v").Value // under -v, the test would print into the output of the example
	defer func(was string) { _ = v.Set(was) }(v.String())
	_ = v.Set("false")
	testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "bubble", F: func(t *testing.T) { once.Do(func() { f(t) }) },
	}})
}

// Datagrams may be lost, so a client repeats its request until the response arrives.
func ExampleNode_ListenPacket() {
	report := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MaxLatency: 10 * time.Millisecond, Loss: 0.5, Double: 0.1})
		server, err := w.Node("server").ListenPacket("udp", ":53")
		if err != nil {
			return err
		}
		_ = w.Node("server").Go(func() {
			for p := make([]byte, 512); ; {
				n, from, err := server.ReadFrom(p)
				if err != nil {
					return
				}
				_, _ = server.WriteTo(append([]byte("hello, "), p[:n]...), from)
			}
		})
		client, err := w.Node("client").ListenPacket("udp", ":0")
		if err != nil {
			return err
		}
		to, err := simulation.UDPAddr("server:53")
		for p := make([]byte, 512); err == nil; {
			_, _ = client.WriteTo([]byte("client"), to)
			_ = client.SetReadDeadline(suspend.Now().Add(50 * time.Millisecond))
			if n, _, err := client.ReadFrom(p); err == nil {
				fmt.Printf("%s\n", p[:n])
				return nil
			}
		}
		return err
	}, simulation.Options{Seed: 1})
	fmt.Println(report.Err)

	// Output:
	// hello, client
	// <nil>
}

// A checksum detects bytes of a disk that have changed.
func ExampleNode_RotDisk() {
	simulation.Run(func(ctx context.Context, w *simulation.World) error {
		n, p := w.Node("a"), make([]byte, 4096)
		f, err := n.FS().Create("f")
		if err != nil {
			return err
		}
		sum := crc32.ChecksumIEEE(p)
		_, _ = f.WriteAt(p, 0)
		_ = f.Sync()
		n.RotDisk(0.5)
		_, _ = f.ReadAt(p, 0)
		fmt.Println("the file is whole:", crc32.ChecksumIEEE(p) == sum)
		return nil
	}, simulation.Options{Seed: 1})

	// Output:
	// the file is whole: false
}
