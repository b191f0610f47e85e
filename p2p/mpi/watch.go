package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	binding "github.com/halox/halox/internal/mpi"
)

// How a process listens. A beat is a small part of the limit, so that a process that lives is
// never taken for one that does not.
const (
	lookEvery  = 5 * time.Millisecond
	longestGap = time.Second // of two looks, that counts: while this process was stopped itself, nobody was silent
	beats      = 20          // within the time after which a process counts as gone
)

// A note is what processes tell each other: its kind, the length of a text, and that.
const (
	noteBytes = 1024
	headBytes = 3
)

const (
	alive  byte = 1
	failed byte = 2
)

// watch is the thread by which a process hears whether the others live. Each tells rank 0, and
// rank 0 tells each, several times within half the limit; who has failed tells all.
type watch struct {
	hosts   []string // by rank
	limit   time.Duration
	failure *failure
	comm    *binding.Comm
	in      *binding.Memory
	out     []*post // by rank
	silent  []time.Duration
	news    chan error    // of this process, for all others
	quiet   chan struct{} // closed to have it send no more
	end     chan struct{} // closed to have it end
	ended   chan struct{}
}

// post is what is on its way to one process.
type post struct {
	memory  *binding.Memory
	request binding.Request
}

// newWatch starts the thread. All processes must call it.
func newWatch(control *binding.Comm, hosts []string, limit time.Duration, f *failure) (*watch, error) {
	comm, err := control.Dup()
	if err != nil {
		return nil, err
	}
	w := &watch{
		hosts: hosts, limit: limit, failure: f, comm: comm,
		out: make([]*post, len(hosts)), silent: make([]time.Duration, len(hosts)),
		news: make(chan error, 1), quiet: make(chan struct{}), end: make(chan struct{}), ended: make(chan struct{}),
	}
	if w.in, err = binding.NewMemory(noteBytes); err != nil {
		return nil, err
	}
	for rank := range w.out {
		m, err := binding.NewMemory(noteBytes)
		if err != nil {
			return nil, err
		}
		w.out[rank] = &post{memory: m}
	}
	go w.run()
	return w, nil
}

// fail keeps a failure of this process, if it is the first that it knows of, and has all others
// told.
func (w *watch) fail(err error) {
	if !w.failure.set(err) {
		return
	}
	select {
	case w.news <- err:
	default: // there was one before
	}
}

// run listens until the end. Where MPI itself fails it is of no more use: the failure of this
// process is all that is left.
func (w *watch) run() {
	defer close(w.ended)
	if err := w.listen(); err != nil {
		w.failure.set(fmt.Errorf("mpi: watch the other processes: %w", err))
	}
}

func (w *watch) listen() error {
	var receive binding.Request
	if err := w.comm.Irecv(&receive, w.in.Bytes, binding.AnySource, 0); err != nil {
		return err
	}
	last, beat := time.Now(), time.Duration(0)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-w.end:
			return w.stop(&receive)
		case err := <-w.news:
			if err := w.tellAll(err); err != nil {
				return err
			}
		case <-look.C:
		}
		if err := w.hear(&receive); err != nil {
			return err
		}
		gap := min(time.Since(last), longestGap)
		last, beat = time.Now(), beat+gap
		if isClosed(w.quiet) || w.failure.err() != nil {
			continue
		}
		if beat >= w.patience()/beats {
			beat = 0
			if err := w.beat(); err != nil {
				return err
			}
		}
		w.count(gap)
	}
}

// patience returns how long a process may be silent. It is less than the limit, so that who
// waits for one that is gone learns who that is.
func (w *watch) patience() time.Duration { return w.limit / 2 }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// hear takes all notes that have come.
func (w *watch) hear(receive *binding.Request) error {
	for {
		came, err := receive.Test()
		if !came || err != nil {
			return err
		}
		w.silent[receive.Source] = 0
		if w.in.Bytes[0] == failed {
			length := binary.LittleEndian.Uint16(w.in.Bytes[1:])
			from := receive.Source
			w.failure.set(&RemoteError{from, w.hosts[from], string(w.in.Bytes[headBytes : headBytes+int(length)])})
		}
		if err := w.comm.Irecv(receive, w.in.Bytes, binding.AnySource, 0); err != nil {
			return err
		}
	}
}

// peers returns the ranks whose silence counts here.
func (w *watch) peers() (first, end int) {
	if w.comm.Rank() == 0 {
		return 1, w.comm.Size()
	}
	return 0, 1
}

// beat tells peers that this process lives.
func (w *watch) beat() error {
	for rank, end := w.peers(); rank < end; rank++ {
		if err := w.send(rank, alive, ""); err != nil {
			return err
		}
	}
	return nil
}

// tellAll tells all others of the failure of this process.
func (w *watch) tellAll(why error) error {
	var errs []error
	for rank := range w.out {
		if rank != w.comm.Rank() {
			errs = append(errs, w.send(rank, failed, why.Error()))
		}
	}
	return errors.Join(errs...)
}

// send sends a note, unless the one before has not been taken: a beat is then left out, and of
// a failure that process hears later, or is gone.
func (w *watch) send(rank int, kind byte, text string) error {
	p := w.out[rank]
	if done, err := p.request.Test(); err != nil || !done {
		return err
	}
	text = text[:min(len(text), noteBytes-headBytes)]
	p.memory.Bytes[0] = kind
	binary.LittleEndian.PutUint16(p.memory.Bytes[1:], uint16(len(text)))
	copy(p.memory.Bytes[headBytes:], text)
	return w.comm.Isend(&p.request, p.memory.Bytes[:headBytes+len(text)], rank, 0)
}

// count finds who has been silent for too long, and tells the others.
func (w *watch) count(gap time.Duration) {
	for rank, end := w.peers(); rank < end; rank++ {
		if w.silent[rank] += gap; w.silent[rank] > w.patience() {
			w.fail(fmt.Errorf("mpi: %s has said nothing for %v: it has ended, or hangs", nameOf(rank, w.hosts), w.patience()))
			return
		}
	}
}

// farewell is how long notes are given to leave.
const farewell = time.Second

// stop ends what is under way: notes that are leaving, and the receive.
func (w *watch) stop(receive *binding.Request) error {
	var errs []error
	select {
	case err := <-w.news:
		errs = append(errs, w.tellAll(err))
	default:
	}
	for _, p := range w.out {
		if err := p.request.Wait(context.Background(), farewell); err != nil && w.failure.err() == nil {
			errs = append(errs, err)
		}
	}
	if err := w.hear(receive); err != nil {
		return errors.Join(append(errs, err)...)
	}
	errs = append(errs, receive.Cancel())
	if err := receive.Wait(context.Background(), farewell); err != nil && w.failure.err() == nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
