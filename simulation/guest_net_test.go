package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/rpc"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// web is an ordinary server: it has no listener of its own, and answers with the name of its caller.
func web() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		at := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		fmt.Fprintf(w, "%s calls %v", from, at)
	})
	_ = http.ListenAndServe(":80", nil)
}

func get(url string) (string, error) {
	resp, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestGuestNetHTTP(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	repeats(t, 5, func(_ context.Context, w *simulation.World) error {
		w.SetFaults(far)
		w.Node("server").Start(func(context.Context, *simulation.Host) { web() })
		done := make(chan error)
		for _, name := range []string{"client", "server"} {
			w.Node(name).Start(func(context.Context, *simulation.Host) {
				want := map[string]string{"client": "10.0.0.2 calls 10.0.0.1:80", "server": "127.0.0.1 calls 127.0.0.1:80"}[name]
				url := map[string]string{"client": "http://server/", "server": "http://localhost/"}[name]
				for n := 0; n < 20; {
					time.Sleep(10 * time.Millisecond)
					text, err := get(url)
					switch {
					case err != nil: // a reset
					case text == want:
						n++
					default:
						done <- errors.New(text)
						return
					}
				}
				http.DefaultClient.CloseIdleConnections()
				done <- nil
			})
		}
		return errors.Join(<-done, <-done)
	})
}

// Programs of a World have their own patterns and their own connections, although they share the variables of net/http. A program that runs
// again begins with neither.
func TestGuestNetPrograms(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	if child, _ := apart(t, false); !child { // goroutines of crashed nodes stay
		return
	}
	http.HandleFunc("/of/all", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "all") })
	onNode(t, func(w *simulation.World) {
		serve := func(says string) func(context.Context, *simulation.Host) {
			return func(context.Context, *simulation.Host) {
				http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, says) })
				http.Handle("/who", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) }))
				_ = http.ListenAndServe(":80", nil)
			}
		}
		w.Node("b").Start(serve("b"))
		w.Node("c").Start(serve("c"))
		time.Sleep(time.Second)
		see := func(url, want string) {
			t.Helper()
			text, err := get(url)
			require.NoError(t, err)
			require.Equal(t, want, text)
		}
		see("http://b/", "b")
		see("http://c/", "c")
		see("http://b/of/all", "all")
		see("http://b/who", "10.0.0.1:49152")
		other := make(chan string)
		ask := func(context.Context, *simulation.Host) { text, _ := get("http://b/who"); other <- text }
		w.Node("d").Start(ask)
		require.Equal(t, "10.0.0.4:49152", <-other)
		w.Node("d").Start(ask)
		require.Equal(t, "10.0.0.4:49153", <-other, "another program of the same node")
		w.Node("b").Crash()
		w.Node("b").Start(serve("b again"))
		time.Sleep(time.Second)
		see("http://b/", "b again")
		http.DefaultClient.CloseIdleConnections()
	})
}

type Doubler struct{}

func (Doubler) Double(n int, r *int) error { *r = 2 * n; return nil }

func TestGuestNetRPC(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	repeats(t, 3, func(_ context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond})
		w.Node("server").Start(func(context.Context, *simulation.Host) {
			s := rpc.NewServer()
			_ = s.Register(Doubler{})
			l, err := net.Listen("tcp", ":90")
			if err == nil {
				s.Accept(l)
			}
		})
		done := make(chan error)
		w.Node("client").Start(func(context.Context, *simulation.Host) {
			time.Sleep(time.Second)
			c, err := rpc.Dial("tcp", "server:90")
			r := 0
			for n := range 10 {
				if err == nil {
					err = c.Call("Doubler.Double", n, &r)
				}
			}
			if err == nil && r != 18 {
				err = fmt.Errorf("%d", r)
			}
			_ = c.Close()
			done <- err
		})
		return <-done
	})
}

// A datagram to a socket of both families has an address in IPv6, as on Linux. The seed decides which datagrams are lost.
func TestGuestNetUDP(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	repeats(t, 3, func(_ context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond, Loss: 0.3})
		w.Node("server").Start(func(context.Context, *simulation.Host) {
			p, _ := net.ListenPacket("udp", ":53")
			buf := make([]byte, 100)
			for {
				n, from, err := p.(*net.UDPConn).ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				_, _ = p.(*net.UDPConn).WriteToUDPAddrPort(fmt.Appendf(buf[:n], " from %v", from.Addr()), from)
			}
		})
		done := make(chan error)
		w.Node("client").Start(func(context.Context, *simulation.Host) {
			time.Sleep(time.Second)
			c, err := net.Dial("udp", "server:53")
			buf := make([]byte, 100)
			n, tries := 0, 0
			for ; err == nil && n == 0 && tries < 100; tries++ {
				_, _ = c.Write([]byte("echo"))
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				n, _ = c.Read(buf)
			}
			if string(buf[:n]) != "echo from ::ffff:10.0.0.2" {
				err = fmt.Errorf("%q after %d tries, %w", buf[:n], tries, err)
			}
			done <- err
		})
		return <-done
	})
}

func TestGuestNetNames(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	onNode(t, func(w *simulation.World) {
		w.Node("server").Start(func(context.Context, *simulation.Host) { names(":53") })
		w.Node("10.1.2.3").Start(func(context.Context, *simulation.Host) { web() })
		time.Sleep(time.Second)
		begun := time.Now()
		all, err := net.LookupHost("server")
		require.NoError(t, err)
		require.Equal(t, []string{"10.0.0.2"}, all)
		all, _ = net.LookupHost("localhost")
		require.Equal(t, []string{"127.0.0.1"}, all)
		ips, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip6", "localhost")
		require.NoError(t, err)
		require.Equal(t, "[::1]", fmt.Sprint(ips))
		all, _ = net.LookupAddr("10.0.0.2")
		require.Equal(t, []string{"server."}, all)
		name, _ := net.LookupCNAME("server")
		require.Equal(t, "server.", name)
		port, _ := net.LookupPort("tcp", "https")
		require.Equal(t, 443, port)
		_, err = net.LookupPort("tcp", "mysql")
		require.Error(t, err, "the ports of this machine do not belong to a World")
		for _, look := range []func() error{
			func() error { _, err := net.LookupHost("nobody"); return err },
			func() error { _, err := net.LookupIP("nobody"); return err },
			func() error { _, err := net.LookupAddr("10.9.9.9"); return err },
			func() error { _, err := net.LookupCNAME("nobody"); return err },
			func() error { _, _, err := net.LookupSRV("http", "tcp", "nobody"); return err },
			func() error { _, err := net.LookupTXT("server"); return err },
			func() error { _, err := net.Dial("tcp", "nobody:80"); return err },
		} {
			var unknown *net.DNSError
			require.ErrorAs(t, look(), &unknown)
			require.True(t, unknown.IsNotFound, unknown)
		}
		require.Zero(t, time.Since(begun))

		text, err := get("http://10.1.2.3/")
		require.NoError(t, err)
		require.Equal(t, "10.0.0.1 calls 10.1.2.3:80", text)
		http.DefaultClient.CloseIdleConnections()
		_, err = net.Dial("tcp", "10.0.0.99:80")
		require.ErrorIs(t, err, syscall.EHOSTUNREACH)

		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, "10.0.0.2:53")
		}}
		all, err = r.LookupHost(t.Context(), "db.example")
		require.NoError(t, err)
		require.Equal(t, []string{"10.9.9.9"}, all)
		all, err = r.LookupHost(t.Context(), "server")
		require.NoError(t, err)
		require.Equal(t, []string{"10.0.0.2"}, all)
		asked := ""
		_, _ = (&net.Dialer{Resolver: r}).DialContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			DNSStart: func(i httptrace.DNSStartInfo) { asked = i.Host },
			DNSDone:  func(i httptrace.DNSDoneInfo) { asked += fmt.Sprint(i.Addrs) },
		}), "tcp", "db.example:80")
		require.Equal(t, "db.example[{10.9.9.9 }]", asked)

		interfaces, err := net.Interfaces()
		require.NoError(t, err)
		require.Len(t, interfaces, 2)
		require.Equal(t, "eth0", interfaces[1].Name)
		addrs, err := interfaces[1].Addrs()
		require.NoError(t, err)
		require.Equal(t, "[10.0.0.1/8]", fmt.Sprint(addrs))
		addrs, err = interfaces[1].MulticastAddrs()
		require.NoError(t, err)
		require.Empty(t, addrs)
		addrs, _ = net.InterfaceAddrs()
		require.Equal(t, "[127.0.0.1/8 ::1/128 10.0.0.1/8]", fmt.Sprint(addrs))
	})
}

// names is a name server that gives each name the address 10.9.9.9.
func names(address string) {
	p, err := net.ListenPacket("udp", address)
	for buf := make([]byte, 512); err == nil; {
		var n int
		var from net.Addr
		if n, from, err = p.ReadFrom(buf); err != nil {
			return
		}
		q := slices.Clone(buf[:12+slices.Index(buf[12:n], 0)+5]) // the header and the question, without what follows it
		copy(q[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
		if q[len(q)-3] == 1 { // an address of IPv4
			q[7] = 1
			q = append(q, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 9, 9, 9)
		}
		_, err = p.WriteTo(q, from)
	}
}

// A node has loopback addresses and one of its own, and a socket may listen on all of them.
func TestGuestNetAddresses(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	onNode(t, func(w *simulation.World) {
		listen := func(address, says string) (net.Listener, error) {
			l, err := net.Listen("tcp", address)
			if err == nil {
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						_, _ = io.WriteString(c, says)
						_ = c.Close()
					}
				}()
			}
			return l, err
		}
		hear := func(address string) string {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return err.Error()
			}
			defer c.Close()
			b, _ := io.ReadAll(c)
			return string(b)
		}
		own, err := listen("10.0.0.1:80", "own")
		require.NoError(t, err)
		require.Equal(t, "10.0.0.1:80", own.Addr().String())
		loop, err := listen("localhost:80", "loop")
		require.NoError(t, err)
		for _, want := range [][2]string{{"a:80", "own"}, {"10.0.0.1:80", "own"}, {"127.0.0.1:80", "loop"}, {":80", "loop"}} {
			require.Equal(t, want[1], hear(want[0]), want[0])
		}
		_, err = net.Listen("tcp", ":80")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		_, err = net.Listen("tcp", "10.0.0.2:80")
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		other := make(chan string)
		w.Node("b").Start(func(context.Context, *simulation.Host) { other <- hear("a:80") })
		require.Equal(t, "own", <-other)
		require.NoError(t, own.Close())
		require.Equal(t, "dial tcp 10.0.0.1:80: connect: connection refused", hear("a:80"))
		require.NoError(t, loop.Close())
		all, err := listen(":80", "all")
		require.NoError(t, err)
		require.Equal(t, "[::]:80", all.Addr().String())
		require.Equal(t, "all", hear("a:80"))
		require.Equal(t, "all", hear("[::1]:80"))

		d := net.Dialer{LocalAddr: &net.TCPAddr{Port: 4000}}
		c, err := d.Dial("tcp", "a:80")
		require.NoError(t, err)
		require.Equal(t, "10.0.0.1:4000", c.LocalAddr().String())
		d.LocalAddr.(*net.TCPAddr).Port = 80
		_, err = d.Dial("tcp", "a:80")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		require.NoError(t, c.Close())
		require.NoError(t, all.Close())
	})
}

// A program that asks for a descriptor gets an error, or nothing happens.
func TestGuestNetHasNoDescriptor(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	onNode(t, func(*simulation.World) {
		var control []string
		lc := net.ListenConfig{Control: func(network, address string, c syscall.RawConn) error {
			control = append(control, network, address)
			return c.Control(func(uintptr) { t.Error("there is no descriptor") })
		}}
		l, err := lc.Listen(t.Context(), "tcp", ":80")
		require.NoError(t, err)
		refuses := errors.New("refused")
		_, err = (&net.Dialer{Control: func(network, address string, _ syscall.RawConn) error {
			control = append(control, network, address)
			return refuses
		}}).Dial("tcp", "a:80")
		require.ErrorIs(t, err, refuses)
		require.Equal(t, []string{"tcp6", ":80", "tcp4", "10.0.0.1:80"}, control)

		go func() { _, _ = l.Accept() }()
		c, err := net.Dial("tcp", "a:80")
		require.NoError(t, err)
		_, err = c.(*net.TCPConn).File()
		require.ErrorIs(t, err, syscall.ENOTSUP)
		_, err = l.(*net.TCPListener).File()
		require.ErrorIs(t, err, syscall.ENOTSUP)
		raw, err := c.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(uintptr) { t.Error("there is no descriptor") }))
		require.ErrorIs(t, raw.Write(func(uintptr) bool { return true }), syscall.ENOTSUP)
		multipath, err := c.(*net.TCPConn).MultipathTCP()
		require.NoError(t, err)
		require.False(t, multipath)
		_, err = net.Dial("ip4:icmp", "127.0.0.1")
		require.ErrorIs(t, err, syscall.EPERM)
		_, err = net.Listen("unixpacket", "/run/x")
		require.ErrorIs(t, err, syscall.EPROTONOSUPPORT)
		_, err = net.ListenPacket("unixgram", "/run/x")
		require.ErrorIs(t, err, syscall.EPROTONOSUPPORT)
		_, err = net.ListenMulticastUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(224, 0, 0, 1), Port: 53})
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		require.NoError(t, c.Close())
		require.NoError(t, l.Close())
	})
}

func TestGuestNetFaults(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	if child, _ := apart(t, false); !child { // goroutines of crashed nodes stay
		return
	}
	onNode(t, func(w *simulation.World) {
		var conns atomic.Int32
		serve := func(context.Context, *simulation.Host) {
			l, err := net.Listen("tcp", ":80")
			for err == nil {
				if _, err = l.Accept(); err == nil {
					conns.Add(1)
				}
			}
		}
		w.Node("server").Start(serve)
		time.Sleep(time.Second)
		after := func(d *net.Dialer) (time.Duration, error) {
			begun := time.Now()
			c, err := d.Dial("tcp", "server:80")
			if err == nil {
				_ = c.Close()
			}
			return time.Since(begun), err
		}
		c, err := net.Dial("tcp", "server:80")
		require.NoError(t, err)

		w.Partition([]string{"a"}, []string{"server"})
		took, err := after(&net.Dialer{Timeout: 5 * time.Second})
		require.Equal(t, 5*time.Second, took)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "dial tcp 10.0.0.2:80: i/o timeout")
		var late net.Error
		require.ErrorAs(t, err, &late)
		require.True(t, late.Timeout())
		took, err = after(new(net.Dialer))
		require.Equal(t, 127*time.Second, took)
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		require.ErrorAs(t, err, &late)
		require.True(t, late.Timeout())
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_ = c.SetReadDeadline(time.Time{})
		w.Heal()
		_, err = after(new(net.Dialer))
		require.NoError(t, err)

		w.Node("server").Crash()
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = after(new(net.Dialer))
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		before := conns.Load()
		w.Node("server").Start(serve)
		time.Sleep(time.Second)
		_, err = after(new(net.Dialer))
		require.NoError(t, err)
		require.Equal(t, before+1, conns.Load())

		w.Link("a", "server").Cut()
		multipath := new(net.Dialer)
		multipath.SetMultipathTCP(true)
		took, err = after(multipath)
		require.Equal(t, 3*time.Second, took, "one attempt")
		require.ErrorIs(t, err, syscall.EHOSTUNREACH)
	})
}

// Main belongs to no node, so it has no network.
func TestGuestNetOfMain(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	r := guests(t, func(context.Context, *simulation.World) error {
		_, err := net.Listen("tcp", ":80")
		require.ErrorContains(t, err, "main has no network")
		_, err = net.Dial("tcp", "127.0.0.1:80")
		require.ErrorContains(t, err, "main has no network")
		_, err = net.LookupHost("nobody")
		require.ErrorContains(t, err, "main has no network")
		return nil
	})
	require.NoError(t, r.Err)
}
