// Package weigh measures how many bytes a connection that waits takes in a server, which is another process of the same program.
package weigh

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"time"
)

// Serve is called by the process of the server, after the server has started. It prints the address. For each line of its input it prints how
// many bytes the process has taken since.
func Serve(addr string) {
	before := live()
	fmt.Println(addr)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(live() - before)
	}
}

// live returns the bytes of the heap, of the stacks, and of the runtime's own structures.
func live() (sum uint64) {
	runtime.GC()
	runtime.GC()
	for _, class := range []string{"heap/objects", "heap/stacks", "metadata/other", "other"} {
		s := []metrics.Sample{{Name: "/memory/classes/" + class + ":bytes"}}
		metrics.Read(s)
		sum += s[0].Value.Uint64()
	}
	return sum
}

// A Client opens connections with Dial, and calls Use twice for each. After Pause, the connections wait.
type Client struct {
	Dial  func(addr string) (net.Conn, error)
	Use   func(c net.Conn) error
	Pause time.Duration
}

// Each starts this program with the given arguments, with which it calls Serve, and returns the bytes for each of n connections.
func Each(n int, c Client, args ...string) (bytes float64, err error) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = in.Close()
		err = errors.Join(err, cmd.Wait())
	}()
	var addr string
	if _, err := fmt.Fscan(out, &addr); err != nil {
		return 0, err
	}
	conns := make([]net.Conn, n)
	for i := range conns {
		if conns[i], err = c.Dial(addr); err != nil {
			return 0, err
		}
		defer conns[i].Close()
		if err := c.Use(conns[i]); err != nil {
			return 0, err
		}
	}
	for _, conn := range conns {
		if err := c.Use(conn); err != nil {
			return 0, err
		}
	}
	time.Sleep(c.Pause)
	fmt.Fprintln(in)
	_, err = fmt.Fscan(out, &bytes)
	return bytes / float64(n), err
}
