package beside

import (
	"context"
	"time"
)

type answerUsual struct {
	done chan struct{} // closed when the fields below are set
	text string
	err  error
}

func chooseUsual(ctx context.Context, answer *answerUsual, lock chan struct{}) (string, error) {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-answer.done:
		return answer.text, answer.err
	case lock <- struct{}{}:
		defer func() { <-lock }()
		return "locked", nil
	case <-late.C:
		return "late", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
