// Package natsactor has the types that the tests need.
package natsactor

import "context"

type Server struct{}

func (s *Server) Close() error                       { return nil }
func (s *Server) Shutdown(ctx context.Context) error { return nil }
