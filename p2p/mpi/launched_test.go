//go:build unix

package mpi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p/mpi"
)

func TestPrograms(t *testing.T) {
	testdevices.InTurn(t, 0, 4)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []struct {
			program string
			ranks   []int
		}{
			{"together", []int{2, 3, 8}},
			{"messages", []int{2, 3, 4}},
			{"agree", []int{3}},
			{"misuse", []int{2}},
			{"queue", []int{2, 4}},
			{"nothing", []int{2, 5}},
			{"duplicate", []int{2, 3}},
		} {
			for _, ranks := range testdevices.Some(1, tc.ranks) {
				t.Run(fmt.Sprintf("%s/%d", tc.program, ranks), func(t *testing.T) {
					in.Done(t, testmpi.Job{Program: tc.program, Ranks: ranks})
				})
			}
		}
	})
}

// A process that fails, ends or hangs ends all others in time, and their errors name it.
func TestFailures(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range testdevices.Some(3, []struct {
			program string
			words   []string // of rank 0, or of rank 1 if rank 0 fails
		}{
			{"fails", []string{"<rank 0 after ", "mpi: results: rank 2 on host ", ": the disk is full>"}},
			{"behind", []string{"<rank 0 after ", "mpi: results: rank 2 on host ", ": the device is lost>"}},
			{"stopped", []string{"<rank 0 after ", "mpi: no heartbeat from rank 2 on host "}},
			{"stopped-0", []string{"<rank 1 after ", "mpi: no heartbeat from rank 0 on host "}},
			{"first", []string{"mpi: take the first 2 processes: MPI_Iallgather with all ranks: waited too long for "}},
			{"mismatch", []string{"<rank 0 after ", "<rank 1 after ", "<rank 2 after ", "called for \"a name\"", "for \"close\"", "all must make the same calls"}},
			{"limits", []string{"mpi: rank 0 on host ", "has a limit of ", "all processes must give the same"}},
			{"hangs", []string{"<rank 0 after ", "mpi: message 5 from rank 2 on host ", "MPI_Irecv from rank 2, tag 1: waited too long for "}},
		}) {
			t.Run(tc.program, func(t *testing.T) {
				in.Fails(t, testmpi.Job{Program: tc.program, Ranks: 3}, tc.words...)
			})
		}
	})
}

// A process that ends too early ends the others, by its launcher or by its silence.
func TestLeaver(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		in.Fails(t, testmpi.Job{Program: "leaves", Ranks: 3})
	})
}

func TestAlone(t *testing.T) {
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "PMIX_RANK"} {
		t.Setenv(name, "0")
		test.Check(t, os.Unsetenv(name))
	}
	p, err := mpi.Join(context.Background(), mpi.Options{})
	if !p.IsAlone() || err != nil {
		t.Errorf("without a launcher: got %v, %v", p, err)
	}
	t.Setenv("PMI_RANK", "0")
	t.Setenv("PMI_SIZE", "1")
	if p, err = mpi.Join(context.Background(), mpi.Options{}); !p.IsAlone() || err != nil {
		t.Errorf("a single process: got %v, %v", p, err)
	}
	test.Report(t, p.Close())
	t.Setenv("PMI_SIZE", "2")
	t.Setenv("HALOX_MPI", "/nowhere/libmpi.so")
	_, err = mpi.Join(context.Background(), mpi.Options{})
	for _, want := range []string{"mpiexec of MPICH or Intel MPI started this process, rank 0 of 2 on host ", "HALOX_MPI: /nowhere/libmpi.so"} {
		test.Says(t, err, want)
	}
}

func TestCallsOfASingleProcess(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	end() // collective calls of one process ignore the context
	p, wrong := mpi.Alone(), errors.New("wrong")
	if p.Size() != 1 || p.Rank != 0 || len(p.Hosts) != 1 || !p.IsAlone() || (*mpi.Processes)(nil).OrAlone() != p {
		t.Errorf("got %d processes, rank %d on %v", p.Size(), p.Rank, p.Hosts)
	}
	if all, err := mpi.Gather(ctx, p, "numbers", 3); err != nil || len(all) != 1 || all[0] != 3 {
		t.Errorf("Gather: got %v, %v", all, err)
	}
	if got, err := mpi.Broadcast(ctx, p, "a number", 4, 0); err != nil || got != 4 {
		t.Errorf("Broadcast: got %v, %v", got, err)
	}
	if err := p.Agree(ctx, "go on", wrong); err != wrong {
		t.Errorf("Agree: got %v", err)
	}
	if err := p.Fail(wrong); err != wrong || p.Err() != nil {
		t.Errorf("Fail: got %v, and then %v", err, p.Err())
	}
	test.Report(t, errors.Join(p.Close(), p.Close(), p.Agree(ctx, "go on", nil)))
}

const (
	queueWriters = 3
	queueRecords = 400
)

// recordOf returns the n-th record of a writer of a process: up to MaxRecord long, and mostly short.
func recordOf(turn, from, to, writer, n int) []byte {
	length := (7*n + 13*writer + from) % 60
	if n%97 == 5 {
		length = mpi.MaxRecord - 8
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(writer))
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	return append(b, content(int64(length), from, to, writer, turn)...)
}

// queued makes all processes write to all others from several goroutines, in several turns, one of them without
// records. Records of a writer arrive whole and in order. Some processes end early but keep receiving.
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
		return errors.New("a record that is too long: got no error")
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
				return fmt.Errorf("record %d of writer %d of rank %d: got %d bytes, want %d", n, writer, from, len(record), len(want))
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
			return errors.New("the turn must end")
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
				return fmt.Errorf("got %d records of writer %d of rank %d, want %d", n, writer, from, want)
			}
		}
	}
	return errors.Join(errs...)
}

// write puts records for all other processes, and waits while queues are full.
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
