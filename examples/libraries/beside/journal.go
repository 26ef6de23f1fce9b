package beside

import (
	"context"
	"time"

	"github.com/braidgo/braid/stage"
)

// A journal writes records in batches, and one batch after another. add returns when the batch of its record is written, with the error of
// this write. A batch that is not full waits a millisecond for more records.
type journal struct {
	records *stage.Stage[string, none]
}

func newJournal(w writer) *journal {
	write := func(_ context.Context,
		b []string, _ []none) error {
		return w(b)
	}
	return &journal{stage.NewBatch(
		"log", write, stage.Options{
			Batch: 100, Queue: 1000,
			Gather: time.Millisecond,
		})}
}

func (j *journal) add(
	ctx context.Context, record string,
) error {
	_, err := j.records.Do(ctx, record)
	return err
}

func (j *journal) close(ctx context.Context) error { return j.records.Shutdown(ctx) }
