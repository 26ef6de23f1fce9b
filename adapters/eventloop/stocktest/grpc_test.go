package stocktest

import (
	"context"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

var grpcRows = []row{
	{name: "grpc-go client, calls of 50 tasks", held: deadlock, run: func(ctx context.Context, e *env) error {
		return overGRPC(e.beside(), e, func(c pb.TestServiceClient) error {
			return e.tasks(50, 5, func(int) error { return unaryCall(ctx, c) })
		})
	}},
	{name: "grpc-go client, streams of 10 tasks", held: deadlock, run: func(ctx context.Context, e *env) error {
		return overGRPC(e.beside(), e, func(c pb.TestServiceClient) error { return e.tasks(10, 1, func(int) error { return stream(ctx, c) }) })
	}},
	{name: "grpc-go server, calls and streams", run: func(ctx context.Context, e *env) error {
		clients := e.beside()
		err := overGRPC(e, clients, func(c pb.TestServiceClient) error {
			return clients.tasks(50, 5, func(task int) error {
				if task < 10 {
					return stream(ctx, c)
				}
				return unaryCall(ctx, c)
			})
		})
		e.took = clients.took
		return err
	}},
}

type greeter struct {
	pb.UnimplementedTestServiceServer
}

func (greeter) UnaryCall(_ context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{Payload: r.Payload}, nil
}

func (greeter) FullDuplexCall(s grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	r, err := s.Recv()
	for ; err == nil; r, err = s.Recv() {
		if err := s.Send(&pb.StreamingOutputCallResponse{Payload: r.Payload}); err != nil {
			return err
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// overGRPC serves in a task of one env, and connects from the other env.
func overGRPC(server, client *env, f func(c pb.TestServiceClient) error) error {
	s := grpc.NewServer()
	pb.RegisterTestServiceServer(s, greeter{})
	ln, err := server.listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := server.spawn(func() { _ = s.Serve(ln) }); err != nil {
		return err
	}
	defer s.Stop()
	c, err := grpc.NewClient("passthrough:///"+ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return client.dial(ctx, "tcp", address) }))
	if err != nil {
		return err
	}
	defer c.Close()
	return f(pb.NewTestServiceClient(c))
}

func unaryCall(ctx context.Context, c pb.TestServiceClient) error {
	r, err := c.UnaryCall(ctx, &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte(greeting)}})
	return is(r.GetPayload().GetBody(), err)
}

func stream(ctx context.Context, c pb.TestServiceClient) error {
	s, err := c.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	for range 10 {
		if err := s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: []byte(greeting)}}); err != nil {
			return err
		}
		r, err := s.Recv()
		if err := is(r.GetPayload().GetBody(), err); err != nil {
			return err
		}
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	if _, err := s.Recv(); err != io.EOF {
		return fmt.Errorf("no end: %w", err)
	}
	return nil
}
