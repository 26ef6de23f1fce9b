package suspendtest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/suspend"
)

// bubble suspends plain goroutines in a sequence of synctest bubbles. bubble does not use the scheduler, because contract 12 is
// about plain goroutines only.
func bubble(t *testing.T) {
	for range 2 { // an earlier bubble must not affect a later bubble
		synctest.Test(t, bubbleIsDurable)
		synctest.Test(t, bubbleSleeps)
	}
	for _, cancelled := range []bool{false, true} {
		bubbleWithOutsideContext(t, cancelled)
	}
}

// bubbleIsDurable checks that a suspended goroutine is durably blocked, so that synctest.Wait returns.
func bubbleIsDurable(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	var resumes []suspend.Resumer[int]
	results := make(chan error, 6)
	for i := range 6 {
		c := []context.Context{background, ctx}[i%2]
		go func() {
			_, err := suspend.Suspend(c, func(r suspend.Resumer[int]) (int, bool) {
				resumes = append(resumes, r)
				return 0, false
			})
			results <- err
		}()
		synctest.Wait()
	}
	if len(resumes) != 6 || len(results) != 0 {
		t.Fatalf("of 6 goroutines %d have suspended and %d returned", len(resumes), len(results))
	}
	for i, want := range []int{1, 2} { // one goroutine with each context
		resumes[i].Resume(0, nil)
		synctest.Wait()
		if len(results) != want {
			t.Fatalf("%d goroutines were resumed, and %d returned", want, len(results))
		}
	}
	cancel()
	synctest.Wait()
	if len(results) != 4 {
		t.Fatalf("2 goroutines were resumed and 2 cancelled, and %d returned", len(results))
	}
	for _, i := range []int{2, 4} {
		resumes[i].Resume(0, nil)
	}
	failed := 0
	for range 6 {
		if err := <-results; err != nil {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("2 goroutines were cancelled, and %d returned an error", failed)
	}
}

// bubbleSleeps checks that a Sleep in a bubble follows the bubble's clock.
func bubbleSleeps(t *testing.T) {
	begin := time.Now()
	if err := suspend.Sleep(background, time.Hour); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(background, time.Hour)
	defer cancel()
	if err := suspend.Sleep(ctx, 2*time.Hour); err != context.DeadlineExceeded {
		t.Error(err)
	}
	if d := time.Since(begin); d != 2*time.Hour {
		t.Errorf("slept for %v", d)
	}
}

// bubbleWithOutsideContext checks that a goroutine in a bubble can wait with a context from outside the bubble, and can be
// resumed or cancelled. As in a select on such a context, the goroutine is not durably blocked, because code outside may end
// the wait. The test must call Done outside the bubble first. Otherwise the Done channel belongs to the bubble, and a call of
// cancel outside the bubble ends the process.
func bubbleWithOutsideContext(t *testing.T, cancelled bool) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	_ = ctx.Done()
	ask, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answered)
		if <-ask; cancelled {
			cancel()
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		published := make(chan suspend.Resumer[int])
		result := make(chan error)
		go func() {
			_, err := suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
				go func() { published <- r }()
				return 0, false
			})
			result <- err
		}()
		r := <-published
		close(ask)
		<-answered
		if !cancelled {
			r.Resume(0, nil)
		}
		if err := <-result; (err != nil) != cancelled {
			t.Errorf("with a context from outside the bubble, Suspend returned %v", err)
		}
	})
}
