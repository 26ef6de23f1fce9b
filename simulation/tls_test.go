package simulation_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// Stock crypto/tls, and the parsing of net/http, run between tasks. The ciphertext is the same in each run.
func TestStockTLSAndHTTP(t *testing.T) {
	hashes := map[uint64]bool{}
	for _, seed := range []uint64{1, 2} {
		var first simulation.Report
		for try := range 3 {
			t.Run(fmt.Sprintf("seed %d, run %d", seed, try+1), func(t *testing.T) {
				cryptotest.SetGlobalRandom(t, seed)
				r := simulation.Run(https(t), simulation.Options{Seed: seed})
				require.NoError(t, r.Err)
				if try == 0 {
					first = r
				}
				require.Equal(t, first, r)
				hashes[r.Hash] = true
			})
		}
	}
	require.Len(t, hashes, 2)
}

// https returns a program with five clients and a server.
func https(t *testing.T) func(ctx context.Context, w *simulation.World) error {
	return func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond})
		now := func() time.Time { return suspend.Now() }
		key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
		c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: w.Now().Add(time.Hour), DNSNames: []string{"server"}}
		cert := must(x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key))
		roots := x509.NewCertPool()
		roots.AddCert(must(x509.ParseCertificate(cert)))
		served := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}, Time: now}

		server := w.Node("server")
		ln := must(server.Listen("tcp", ":443"))
		_ = server.Go(func() {
			for {
				raw, err := ln.Accept()
				if err != nil {
					return
				}
				_ = server.Go(func() {
					c := tls.Server(raw, served)
					defer c.Close()
					r, err := http.ReadRequest(bufio.NewReader(c))
					require.NoError(t, err)
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(r.URL.Path), r.URL.Path)
				})
			}
		})
		return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			for i := range 5 {
				client := w.Node(fmt.Sprint("client", i))
				s.Go(client, func(ctx context.Context) error {
					raw, err := client.Dial(ctx, "tcp", "server:443")
					if err != nil {
						return err
					}
					c := tls.Client(raw, &tls.Config{ServerName: "server", RootCAs: roots, Time: now})
					defer c.Close()
					fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: server\r\n\r\n", i)
					answer, err := http.ReadResponse(bufio.NewReader(c), nil)
					if err != nil {
						return err
					}
					body, err := io.ReadAll(answer.Body)
					require.Equal(t, fmt.Sprintf("/%d", i), string(body))
					return err
				})
			}
			return nil
		})
	}
}
