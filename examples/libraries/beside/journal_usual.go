package beside

import (
	"context"
	"time"
)

// An entry is a record of a journalUsual, with a channel for the error of its write.
type entry struct {
	record  string
	written chan error
}

type journalUsual struct {
	entries     chan entry
	stop, ended chan struct{}
}

func newJournalUsual(write writer) *journalUsual {
	j := &journalUsual{make(chan entry), make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(j.ended)
		for {
			select {
			case first := <-j.entries:
				j.write(write, first)
			case <-j.stop:
				return
			}
		}
	}()
	return j
}

// write writes the batch that begins with the entry first.
func (j *journalUsual) write(write writer, first entry) {
	batch, records := []entry{first}, []string{first.record}
	late := time.NewTimer(time.Millisecond)
	defer late.Stop()
	for full := false; !full && len(batch) < 100; {
		select {
		case e := <-j.entries:
			batch, records = append(batch, e), append(records, e.record)
		case <-late.C:
			full = true
		case <-j.stop:
			full = true
		}
	}
	err := write(records)
	for _, e := range batch {
		e.written <- err
	}
}

func (j *journalUsual) add(ctx context.Context, record string) error {
	e := entry{record, make(chan error, 1)}
	select {
	case j.entries <- e:
	case <-j.stop:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-e.written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *journalUsual) close(ctx context.Context) error {
	close(j.stop)
	select {
	case <-j.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
