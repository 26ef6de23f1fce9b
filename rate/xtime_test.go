package rate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/rate"
)

// The results are those of golang.org/x/time/rate v0.16.0 for the same steps, in a bubble of testing/synctest.
var asInXTime = []struct{ name, steps, results string }{
	{"Inf ignores the burst", "limit inf, wait 5, allow 5, burst 0, allow 7, wait 7", "0s true true 0s"},
	{"the burst counts again after Inf", "limit inf, allow 5, limit 1, allow 4, wait 4, allow 3", "true false refused 0s true"},
	{"Inf fills the bucket in no time", "allow 3, limit inf, sleep 1ms, limit 1, tokens, allow 3", "true 3.000 true"},
	{"nothing fills the bucket in an instant", "allow 3, limit inf, allow 5, limit 1, tokens, allow 1", "true true 0.000 false"},
	{"a Limit of 0 allows the burst", "limit 0, allow 2, allow 1, allow 1, sleep 1h, allow 1, tokens, allow 0", "true true false false 0.000 true"},
	{"after a Limit of 0", "allow 3, limit 0, sleep 1h, limit 1, tokens, sleep 1s, allow 1, allow 1", "true 0.000 true false"},
	{"a burst of 0", "burst 0, allow 0, allow 1, wait 1, wait 0, burst 1, allow 1, sleep 1s, allow 1", "true false refused 0s 0s false true"},
	{"a new Limit counts from then on", "allow 3, sleep 1500ms, limit 10, tokens, sleep 100ms, tokens, allow 3, allow 2", "true 1.500 2.500 false true"},
	{"a lower Limit", "limit 10, allow 3, sleep 150ms, limit 1, tokens, sleep 500ms, tokens, allow 2", "true 1.500 2.000 true"},
	{"a smaller burst", "burst 2, tokens, allow 3, allow 2, allow 1", "2.000 false true false"},
	{"a smaller burst, and then a larger one", "burst 1, burst 5, tokens, sleep 10s, tokens, allow 5", "1.000 5.000 true"},
	{"a larger burst adds no tokens", "allow 1, burst 5, tokens, sleep 1s, tokens, allow 4, allow 3", "true 2.000 3.000 false true"},
	{"more than the burst", "allow 4, wait 4, tokens, allow 3", "false refused 0s 3.000 true"},
	{"more than the burst changes nothing", "allow 3, sleep 500ms, allow 4, wait 4, sleep 500ms, allow 1, tokens", "true false refused 500ms true 0.000"},
	{"a wait", "allow 3, wait 2, tokens, sleep 1s, tokens, allow 0, sleep 1s, tokens", "true 2s -2.000 -1.000 false 0.000"},
	{"a wait for more tokens than there are", "allow 1, wait 3, tokens", "true 1s -1.000"},
	{"waits in order", "allow 3, wait 2, wait 1, wait 3, tokens, allow 1", "true 2s 3s 6s -6.000 false"},
	{"a deadline that is too early", "allow 3, wait 1 within 500ms, tokens, sleep 500ms, tokens, wait 1 within 400ms", "true refused 0s 0.000 0.500 refused 500ms"},
	{"a deadline that is late enough", "allow 3, wait 1 within 1500ms, wait 2 within 3500ms", "true 1s 3s"},
	{"a deadline that is too early behind others", "allow 3, wait 1, wait 1 within 1500ms, wait 1 within 2500ms, tokens, wait 3 within 3s", "true 1s refused 0s 2s -2.000 refused 0s"},
	{"a deadline and a free token", "wait 3 within 1ms, wait 1 within 999ms, wait 1 within 1001ms", "0s refused 0s 1s"},
	{"a deadline and Inf", "limit inf, wait 9 within 1ms", "0s"},
	{"a deadline and more than the burst", "wait 4 within 1h", "refused 0s"},
	{"a wait that is cancelled", "allow 3, wait 2 until 500ms, sleep 600ms, tokens, sleep 400ms, allow 1", "true cancelled 500ms 0.600 true"},
	{"a wait whose time has come", "allow 3, wait 1 until 1500ms, sleep 2s, tokens", "true 1s 1.000"},
	{"an interval", "limit 0.5, allow 3, wait 1, wait 1, tokens", "true 2s 4s -2.000"},
	{"what is set", "limit 2.5, burst 7, get", "2.5 7"},
}

// A limiter is a rate.Limiter of this package or of x/time.
type limiter interface {
	AllowN(n int) bool
	WaitN(ctx context.Context, n int) error
	SetLimit(perSecond float64)
	SetBurst(n int)
	Tokens() float64
	Get() string
}

// play performs the steps on a limiter with a Limit of 1 and a burst of 3, in a bubble. The result of a wait is the time at which
// it ends.
func play(t *testing.T, l limiter, script string) string {
	begun := time.Now()
	steps := strings.Split(script, ", ")
	results := make([]string, len(steps))
	for i, step := range steps {
		words := append(strings.Fields(step), "", "", "")
		n, after := number(words[1]), duration(words[3])
		switch words[0] {
		case "sleep":
			time.Sleep(duration(words[1]))
		case "allow":
			results[i] = fmt.Sprint(l.AllowN(int(n)))
		case "limit":
			l.SetLimit(n)
		case "burst":
			l.SetBurst(int(n))
		case "tokens":
			results[i] = fmt.Sprintf("%.3f", l.Tokens())
		case "get":
			results[i] = l.Get()
		case "wait":
			ctx, cancel := context.WithCancel(context.Background())
			switch words[2] {
			case "within":
				ctx, cancel = context.WithTimeout(ctx, after)
			case "until":
				time.AfterFunc(after, cancel)
			}
			go func() {
				defer cancel()
				err := l.WaitN(ctx, int(n))
				results[i] = time.Since(begun).Round(time.Millisecond).String()
				if errors.Is(err, context.Canceled) {
					results[i] = "cancelled " + results[i]
				} else if err != nil {
					results[i] = "refused " + results[i]
				}
			}()
			synctest.Wait()
		default:
			t.Fatal(step)
		}
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	return strings.Join(strings.Fields(strings.Join(results, " ")), " ")
}

func number(word string) (n float64) {
	if word == "inf" {
		return float64(rate.Inf)
	}
	_, _ = fmt.Sscan(word, &n)
	return n
}

func duration(word string) time.Duration {
	d, _ := time.ParseDuration(word)
	return d
}

// An ours adapts a Limiter of this package to limiter.
type ours struct{ *rate.Limiter }

func (l ours) AllowN(n int) bool          { return l.Allow(n) }
func (l ours) SetLimit(perSecond float64) { l.Limiter.SetLimit(rate.Limit(perSecond)) }
func (l ours) Get() string                { return fmt.Sprint(l.Limit(), l.Burst()) }

func TestAsInXTime(t *testing.T) {
	for _, c := range asInXTime {
		synctest.Test(t, func(t *testing.T) {
			require.Equal(t, c.results, play(t, ours{rate.NewLimiter(1, 3)}, c.steps), c.name)
		})
	}
}
