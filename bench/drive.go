package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// driveArg makes a process the client of the rows that need one.
const driveArg = "-drive"

// drive takes what to drive, the address, the number of connections and for how long, and prints the nanoseconds per
// operation.
func drive(args []string) error {
	if len(args) != 4 {
		return errors.New("-drive is what the rows of servers start their client with")
	}
	conns, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	var each float64
	switch args[0] {
	case "http":
		each, err = driveHTTP(args[1], conns, d)
	case "tls":
		each, err = driveTLS(args[1], conns, d)
	default:
		err = fmt.Errorf("nothing drives %q", args[0])
	}
	if err == nil {
		fmt.Println(each)
	}
	return err
}

func driveTLS(addr string, conns int, d time.Duration) (float64, error) {
	open := make([]*tls.Conn, conns)
	for i := range open {
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return 0, err
		}
		open[i] = c
	}
	var trips atomic.Int64
	var stop atomic.Bool
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for _, c := range open {
		all.Go(func() {
			buf := make([]byte, 64)
			for !stop.Load() {
				_, err := c.Write(buf)
				if err == nil {
					_, err = io.ReadFull(c, buf)
				}
				if err != nil {
					failed.Store(&err)
					return
				}
				trips.Add(1)
			}
		})
	}
	time.Sleep(d / 5)
	start, before := time.Now(), trips.Load()
	time.Sleep(d)
	n, took := trips.Load()-before, time.Since(start)
	stop.Store(true)
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	if n == 0 {
		return 0, errors.New("no answers")
	}
	return float64(took) / float64(n), nil
}
