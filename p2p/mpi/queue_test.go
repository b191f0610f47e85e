//go:build unix

package mpi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/halox/halox/p2p/mpi"
)

const (
	queueWriters = 3
	queueRecords = 400
)

// recordOf is the n-th record of a writer of a process: up to as long as a record may be, and mostly short.
func recordOf(turn, from, to, writer, n int) []byte {
	length := (7*n + 13*writer + from) % 60
	if n%97 == 5 {
		length = mpi.MaxRecord - 8
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(writer))
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	return append(b, content(int64(length), from, to, writer, turn)...)
}

// queued has all processes write to all others from several goroutines, for some turns, of which one has no records. Those of a writer
// come whole and in order. Some processes end early and go on taking.
func queued(p *mpi.Processes) error {
	q, err := p.NewQueue()
	if err != nil {
		return err
	}
	for turn := range 4 {
		if err := queueTurn(p, q, turn); err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
	}
	if err := q.Put((p.Rank+1)%p.Size(), make([]byte, mpi.MaxRecord), []byte{1}); err == nil {
		return errors.New("too long a record is taken")
	}
	return errors.Join(q.Close(), q.Close())
}

func queueTurn(p *mpi.Processes, q *mpi.Queue, turn int) error {
	if err := q.Begin(); err != nil {
		return err
	}
	records := queueRecords / (1 + p.Rank) * min(turn, 1)
	var left atomic.Int64
	left.Store(queueWriters)
	var group sync.WaitGroup
	errs := make([]error, queueWriters)
	for writer := range queueWriters {
		group.Go(func() {
			defer left.Add(-1)
			errs[writer] = write(p, q, turn, writer, records)
		})
	}
	next := make([][queueWriters]int, p.Size())
	begun := time.Now()
	for !q.IsOver() {
		_, err := q.Take(func(from int, record []byte) error {
			writer := int(binary.LittleEndian.Uint32(record))
			n := next[from][writer]
			next[from][writer]++
			if want := recordOf(turn, from, p.Rank, writer, n); !bytes.Equal(record, want) {
				return fmt.Errorf("record %d of writer %d of rank %d has %d bytes, want %d", n, writer, from, len(record), len(want))
			}
			return nil
		})
		if err := errors.Join(err, q.Flush()); err != nil {
			return err
		}
		if left.Load() == 0 {
			if err := q.End(); err != nil {
				return err
			}
		}
		if time.Since(begun) > testLimit {
			return errors.New("it does not end")
		}
	}
	group.Wait()
	for from, each := range next {
		want := queueRecords / (1 + from) * min(turn, 1)
		if from == p.Rank {
			want = 0
		}
		for writer, n := range each {
			if n != want {
				return fmt.Errorf("%d records of writer %d of rank %d, want %d", n, writer, from, want)
			}
		}
	}
	return errors.Join(errs...)
}

// write puts records for all other processes, and waits while there are too many.
func write(p *mpi.Processes, q *mpi.Queue, turn, writer, records int) error {
	for n := range records {
		for to := range p.Size() {
			if to == p.Rank {
				continue
			}
			for q.IsFull(to) {
				time.Sleep(time.Millisecond)
			}
			record := recordOf(turn, p.Rank, to, writer, n)
			if err := q.Put(to, record[:8], record[8:]); err != nil {
				return err
			}
			clear(record)
		}
		if n%10 == 0 {
			if err := q.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
