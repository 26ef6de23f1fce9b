// Package grpcreg tests three grpc servers that clients find by name in a registry, which is a service of its own.
package grpcreg

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"

	"github.com/braidgo/braid/simulation/services/internal/rig"
)

// registry is the main function of a registry: a name that has registered is listed for ten seconds.
func registry(addr string) error {
	var mu sync.Mutex
	seen, mux := map[string]time.Time{}, http.NewServeMux()
	mux.HandleFunc("POST /{name}", func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.PathValue("name")] = time.Now()
	})
	mux.HandleFunc("GET /", func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for name, at := range seen {
			if time.Since(at) < 10*time.Second {
				fmt.Fprintln(rw, name)
			}
		}
	})
	return http.ListenAndServe(addr, mux)
}

type echo struct {
	pb.UnimplementedTestServiceServer
}

func (echo) UnaryCall(_ context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{Payload: r.Payload}, nil
}

// serve is the main function of a grpc server, which registers its name each second.
func serve(name string) error {
	go func() {
		client := &http.Client{Timeout: time.Second}
		for ; ; time.Sleep(time.Second) {
			if resp, err := client.Post("http://a/"+name, "", nil); err == nil {
				_ = resp.Body.Close()
			}
		}
	}()
	ln, err := net.Listen("tcp", name+":50051")
	if err != nil {
		return err
	}
	srv := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{Time: 5 * time.Second, Timeout: time.Second}))
	pb.RegisterTestServiceServer(srv, echo{})
	return srv.Serve(ln)
}

// call makes a call to a server that the registry knows.
func call(body string) error {
	client := &http.Client{Timeout: time.Second}
	resp, err := client.Get("http://a/")
	if err != nil {
		return err
	}
	names, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	err = fmt.Errorf("%q: %w", names, err)
	for _, name := range strings.Fields(string(names)) {
		cc, e := grpc.NewClient(name+":50051", grpc.WithTransportCredentials(insecure.NewCredentials()))
		if e != nil {
			return e
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		r, e := pb.NewTestServiceClient(cc).UnaryCall(ctx, &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte(body)}})
		cancel()
		_ = cc.Close()
		if e == nil && string(r.Payload.Body) == body {
			return nil
		}
		err = e
	}
	return err
}

// Each call finds a server in two minutes.
func TestRegistry(t *testing.T) {
	calls := func(name string) (err error) {
		for k := range 20 {
			for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				if err = call(fmt.Sprint(name, k)); err == nil {
					break
				}
			}
		}
		return err
	}
	rig.Run(t, 3, rig.Service{Nodes: []string{"a", "b", "c", "d"}, Main: func(name, _ string) error {
		if name == "a" {
			return registry("a:80")
		}
		return serve(name)
	}, Clients: []string{"x", "y"}, Client: calls, Check: func() error { return calls("z") }, Every: time.Second, Faults: 15 * time.Second})
}
