package suspendtest

import "runtime"

func blockOnce(e *env) {
	runs := 0 // only one goroutine uses this count
	e.do("a Suspend that need not wait did not return", func() {
		caller := goroutine()
		for want := 1; want <= 100; want++ {
			_, _ = e.suspend(background, func(r resume) (*box, bool) {
				runs++
				if id := goroutine(); id != caller {
					e.errorf("goroutine %s called Suspend, and block ran on %s", caller, id)
				}
				if want%2 == 0 {
					return nil, true
				}
				r(nil, nil)
				return nil, false
			})
			if runs != want {
				e.fatalf("block ran %d times in %d calls of Suspend", runs, want)
			}
		}
	})
}

// goroutine returns the number of the calling goroutine, as printed in its stack trace.
func goroutine() string {
	var buf [64]byte
	line := string(buf[:runtime.Stack(buf[:], false)])
	for i := len("goroutine "); i < len(line); i++ {
		if line[i] == ' ' {
			return line[len("goroutine "):i]
		}
	}
	return line
}

func blockHoldsNothing(e *env) {
	w := e.waiter(background)
	var spawned chan struct{}
	e.do("block, or another task that runs meanwhile, was blocked", func() {
		_, _ = e.suspend(background, func(r resume) (*box, bool) {
			others := make(chan struct{})
			go func() { // suspends and resumes another goroutine
				defer close(others)
				_, _ = e.suspend(background, func(r resume) (*box, bool) {
					go r(nil, nil)
					return nil, false
				})
			}()
			<-others
			if !w.resume(nil, nil) {
				e.errorf("Resume of another task inside block returned false")
			}
			spawned = e.task(func() {})
			return nil, true
		})
	})
	recv(e, w.ended, "a task that was resumed inside block did not continue")
	recv(e, spawned, "a task that was started inside block did not run")
}

func blockNotIfDone(e *env) {
	for _, kind := range allKinds {
		ctx, cancel := kind.make()
		cancel()
		for range 2 { // the second call must also fail
			e.do("Suspend did not return although ctx has ended", func() {
				v, err := e.suspend(ctx, func(resume) (*box, bool) {
					e.fatalf("block ran although ctx has ended (%s)", kind.name)
					return nil, false
				})
				e.cancelled(ctx, v, err)
			})
		}
	}
}

func blockMustNotSuspend(e *env) {
	try := func() {
		v, err := e.suspend(background, func(r resume) (*box, bool) {
			e.panics("a Suspend inside block", func() {
				_, _ = e.suspend(background, func(r resume) (*box, bool) { return nil, true })
			})
			go r(&box{n: 1}, nil)
			return nil, false
		})
		if v == nil || v.n != 1 || err != nil {
			e.errorf("after a Suspend inside block, the outer Suspend returned %v, %v", v, err)
		}
	}
	e.do("a Suspend inside block broke the outer Suspend", try)
	try() // this goroutine belongs to no scheduler
}

func blockFails(e *env) {
	e.do("Suspend did not return although block has called Resume", func() {
		v, err := e.suspend(background, func(r resume) (*box, bool) {
			if !r(nil, errTest) {
				e.errorf("Resume inside block returned false")
			}
			return nil, false
		})
		if v != nil || err != errTest {
			e.errorf("Suspend returned %v, %v", v, err)
		}
	})
}

func blockValue(e *env) {
	for _, kind := range contextKinds {
		ctx, cancel := kind.make()
		v := new(box)
		e.do("a Suspend whose block returned a value did not return", func() {
			for range 2 {
				if ctx.Err() != nil {
					break
				}
				got, err := e.suspend(ctx, func(resume) (*box, bool) {
					cancel()
					return v, true
				})
				if got != v || err != nil {
					e.errorf("block cancelled ctx (%s) and returned a value, and Suspend returned %v, %v", kind.name, got, err)
				}
			}
			// State that an earlier Suspend left behind must not end the next Suspend.
			late := new(box)
			got, err := e.suspend(background, func(r resume) (*box, bool) {
				go r(late, nil)
				return nil, false
			})
			if got != late || err != nil {
				e.errorf("the next Suspend returned %v, %v", got, err)
			}
		})
	}
}

func blockValueKills(e *env) {
	var dead resume
	w := e.waiter(background, func() {
		v := new(box)
		got, err := e.suspend(background, func(r resume) (*box, bool) { dead = r; return v, true })
		if got != v || err != nil {
			e.errorf("block returned a value, and Suspend returned %v, %v", got, err)
		}
		if dead(new(box), nil) {
			e.errorf("Resume returned true after block had returned a value")
		}
	})
	if dead(new(box), nil) {
		e.errorf("Resume returned true after block had returned a value")
	}
	e.waits(w, "by the Resumer of an earlier Suspend whose block had returned a value")
	e.finish(w)
}

func blockValueResumed(e *env) {
	e.do("Suspend did not return", func() {
		e.panics("a Suspend whose block called Resume and then returned a value", func() {
			_, _ = e.suspend(background, func(r resume) (*box, bool) {
				r(new(box), nil)
				return new(box), true
			})
		})
	})
	w := e.waiter(background)
	e.finish(w)
}

func blockPanics(e *env) {
	for _, before := range []bool{false, true} { // says whether Resume is called before the panic
		var dead resume
		w := e.waiter(background, func() {
			func() {
				defer func() {
					if v := recover(); v != errTest {
						e.errorf("block panicked with %v, and Suspend with %v (nil means that it did not panic)", errTest, v)
					}
				}()
				_, _ = e.suspend(background, func(r resume) (*box, bool) {
					if dead = r; before {
						r(new(box), nil)
					}
					panic(errTest)
				})
			}()
		})
		if dead(new(box), nil) {
			e.fatalf("Resume returned true after block had panicked")
		}
		e.waits(w, "by the Resumer of a block that had panicked")
		e.finish(w)
	}
}

func blockExits(e *env) {
	var dead resume
	ended := e.task(func() {
		v, err := e.suspend(background, func(r resume) (*box, bool) {
			dead = r
			runtime.Goexit()
			return nil, false
		})
		e.errorf("block called runtime.Goexit, but Suspend returned %v, %v", v, err)
	})
	recv(e, ended, "a Goexit in block did not end the task")
	if dead(new(box), nil) {
		e.errorf("Resume returned true after block had called runtime.Goexit")
	}
	e.finish(e.waiter(background))
}
