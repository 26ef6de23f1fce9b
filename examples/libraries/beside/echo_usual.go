package beside

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"
)

func echoUsual(ctx context.Context, ln net.Listener) error {
	var clients sync.WaitGroup
	ended := make(chan struct{})
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	defer func() {
		go func() { clients.Wait(); close(ended) }()
		<-ended
	}()
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		clients.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() {
				select {
				case <-time.After(time.Second):
					_ = c.Close()
				case <-ended:
				}
			})()
			for in := bufio.NewReader(c); ; {
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				line, err := in.ReadString('\n')
				if err != nil {
					return
				}
				if _, err := c.Write([]byte(line)); err != nil {
					return
				}
			}
		})
	}
}
