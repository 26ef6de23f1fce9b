package stocktest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/braidgo/braid/simulation"
)

type echo struct {
	pb.UnimplementedTestServiceServer
}

func (echo) UnaryCall(_ context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	time.Sleep(3 * time.Millisecond)
	return &pb.SimpleResponse{Payload: r.Payload}, nil
}

func (echo) FullDuplexCall(s grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	for {
		r, err := s.Recv()
		if err == nil {
			err = s.Send(&pb.StreamingOutputCallResponse{Payload: r.Payload})
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// keys makes a new certificate for the server.
func keys() (server, client credentials.TransportCredentials, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(100, 0, 0), DNSNames: []string{"server"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	c, err = x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(c)
	server = credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	return server, credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "server"}), err
}

// calls runs five clients. Each makes ten calls with metadata, and then a stream of ten messages with replies.
func calls(secure bool) func(ctx context.Context, w *world) error {
	return func(ctx context.Context, w *world) (err error) {
		const clients = 5
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond, Reset: 0.005})
		server, client := insecure.NewCredentials(), insecure.NewCredentials()
		if secure {
			if server, client, err = keys(); err != nil {
				return err
			}
		}
		srv := grpc.NewServer(grpc.Creds(server))
		pb.RegisterTestServiceServer(srv, echo{})
		defer srv.Stop()
		w.Node("server").Start(func(ctx context.Context, h *simulation.Host) {
			ln, err := h.Listen("tcp", ":50051")
			if err == nil {
				err = srv.Serve(ln)
			}
			w.Log("%v", err)
		})
		errs := make(chan error, clients)
		for i := range clients {
			w.Node(fmt.Sprint("client", i)).Start(func(ctx context.Context, h *simulation.Host) {
				cc, err := grpc.NewClient("passthrough:///server:50051", grpc.WithTransportCredentials(client),
					grpc.WithContextDialer(func(ctx context.Context, a string) (net.Conn, error) { return h.Dial(ctx, "tcp", a) }))
				if err == nil {
					err = ask(ctx, w, pb.NewTestServiceClient(cc), i)
					_ = cc.Close()
				}
				errs <- err
			})
		}
		return all(clients, errs)
	}
}

func ask(ctx context.Context, w *world, c pb.TestServiceClient, i int) error {
	again := func(try func(ctx context.Context) error) error {
		var err error
		for range 100 {
			ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, "a", "1", "b", "2", "c", "3", "d", "4"), time.Second)
			err = try(ctx)
			cancel()
			if err == nil {
				return nil
			}
			w.Log("%d: %v", i, err)
			time.Sleep(10 * time.Millisecond)
		}
		return err
	}
	for k := range 10 {
		body := fmt.Sprint(i, "-", k)
		if err := again(func(ctx context.Context) error {
			r, err := c.UnaryCall(ctx, &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte(body)}}, grpc.WaitForReady(true))
			if err == nil && string(r.Payload.Body) != body {
				err = fmt.Errorf("%s: %s", body, r.Payload.Body)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return again(func(ctx context.Context) error {
		s, err := c.FullDuplexCall(ctx, grpc.WaitForReady(true))
		if err != nil {
			return err
		}
		for k := range byte(10) {
			if err := s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: []byte{k}}}); err != nil {
				return err
			}
			if r, err := s.Recv(); err != nil || r.Payload.Body[0] != k {
				return fmt.Errorf("message %d: %w", k, err)
			}
		}
		if err := s.CloseSend(); err != nil {
			return err
		}
		if _, err := s.Recv(); err != io.EOF {
			return fmt.Errorf("no EOF: %w", err)
		}
		return nil
	})
}

func TestGRPC(t *testing.T)    { apart(t, 5, calls(false)) }
func TestGRPCTLS(t *testing.T) { apart(t, 5, calls(true)) }
