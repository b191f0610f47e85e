package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	binding "github.com/halox/halox/internal/mpi"
)

// Parameters of the heartbeat. Notes are sent at intervals much shorter than the time after which a process counts
// as gone, so that a running process is never taken for one that has ended.
const (
	lookEvery = 5 * time.Millisecond
	maxGap    = time.Second // longest gap that counts: while this process was stopped, the others were not silent
	beats     = 20          // notes within the time after which a process counts as gone
)

// The layout of a note: its kind, the rank that has failed, the length of a text, and the text.
const (
	noteBytes = 1024
	headBytes = 7
)

const (
	alive  byte = 1
	failed byte = 2
	bye    byte = 3 // the last note of a process that ends without a failure
)

// watch is the goroutine that detects whether the other processes still run. Rank 0 and each other rank exchange
// notes several times within half the limit. A process that has failed notifies rank 0, which notifies all others.
// Each note is received from a given rank: MPICH over UCX has lost notes between hosts that were received from
// MPI_ANY_SOURCE.
type watch struct {
	hosts   []string // by rank
	limit   time.Duration
	failure *failure
	comm    *binding.Comm
	peers   []*peer
	news    chan struct{} // this process has failed
	quiet   chan struct{} // closed to send the last notes
	left    chan struct{} // closed when the last notes were sent and received
	end     chan struct{} // closed to end the goroutine
	ended   chan struct{}
}

// peer is a rank that this process exchanges notes with.
type peer struct {
	rank     int
	in, out  *binding.Memory
	receive  binding.Request
	send     binding.Request
	silent   time.Duration
	told     bool // it knows of the failure
	farewell bool // the last note to it was sent
	gone     bool // its last note has arrived: no receive is posted
}

// newWatch starts the goroutine. All processes must call it.
func newWatch(ctx context.Context, control *binding.Comm, hosts []string, limit time.Duration, f *failure) (*watch,
	error) {
	comm, err := control.Dup(ctx, limit)
	if err != nil {
		return nil, err
	}
	w := &watch{
		hosts: hosts, limit: limit, failure: f, comm: comm,
		news: make(chan struct{}, 1), quiet: make(chan struct{}), left: make(chan struct{}),
		end: make(chan struct{}), ended: make(chan struct{}),
	}
	first, end := 0, 1
	if comm.Rank() == 0 {
		first, end = 1, comm.Size()
	}
	for rank := first; rank < end; rank++ {
		p, err := newPeer(rank)
		if err != nil {
			return nil, err
		}
		w.peers = append(w.peers, p)
	}
	go w.run()
	return w, nil
}

func newPeer(rank int) (p *peer, err error) {
	p = &peer{rank: rank}
	if p.in, err = binding.NewMemory(noteBytes); err != nil {
		return nil, err
	}
	p.out, err = binding.NewMemory(noteBytes)
	return p, err
}

// fail stores a failure of this process, if it is the first, and notifies the others.
func (w *watch) fail(err error) {
	if !w.failure.set(err) {
		return
	}
	select {
	case w.news <- struct{}{}:
	default: // already failed
	}
}

// run listens until the end. If MPI itself fails, only this process learns of the failure.
func (w *watch) run() {
	defer close(w.ended)
	if err := w.listen(); err != nil {
		w.failure.set(fmt.Errorf("mpi: watch the other processes: %w", err))
	}
}

func (w *watch) listen() error {
	for _, p := range w.peers {
		if err := w.comm.Irecv(&p.receive, p.in.Bytes, p.rank, 0); err != nil {
			return err
		}
	}
	last, beat := time.Now(), time.Duration(0)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-w.end:
			return w.stop()
		case <-w.news:
		case <-look.C:
		}
		gap := min(time.Since(last), maxGap)
		last, beat = time.Now(), beat+gap
		if err := errors.Join(w.hear(), w.tellFailure()); err != nil {
			return err
		}
		switch {
		case w.failure.err() != nil:
			continue
		case isClosed(w.quiet):
			if err := w.takeLeave(); err != nil {
				return err
			}
			continue
		case beat >= w.patience()/beats:
			beat = 0
			if err := w.beat(); err != nil {
				return err
			}
		}
		w.count(gap)
	}
}

// patience returns how long a process may be silent. It is less than the limit, so that a process that waits for
// one that is gone learns which one.
func (w *watch) patience() time.Duration { return w.limit / 2 }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// hear processes all notes that have arrived.
func (w *watch) hear() error {
	for _, p := range w.peers {
		for !p.gone {
			came, err := p.receive.Test()
			if err != nil {
				return err
			}
			if !came {
				break
			}
			w.take(p)
			if p.gone {
				break
			}
			if err := w.comm.Irecv(&p.receive, p.in.Bytes, p.rank, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// take processes a note.
func (w *watch) take(p *peer) {
	p.silent = 0
	note := p.in.Bytes
	switch note[0] {
	case bye:
		p.gone = true
	case failed:
		rank, length := int(binary.LittleEndian.Uint32(note[1:])), int(binary.LittleEndian.Uint16(note[5:]))
		if rank < len(w.hosts) && length <= noteBytes-headBytes {
			w.failure.set(&RemoteError{
				Rank: rank, Host: w.hosts[rank], Text: string(note[headBytes : headBytes+length]),
			})
		}
		p.told = true // it knows of the failure
	}
}

// beat sends heartbeats to the peers.
func (w *watch) beat() error {
	for _, p := range w.peers {
		if _, err := w.send(p, alive, 0, ""); err != nil {
			return err
		}
	}
	return nil
}

// takeLeave sends the last note to each peer. Notes do not overtake each other: once that of a peer has arrived,
// none is in flight.
func (w *watch) takeLeave() error {
	all := true
	for _, p := range w.peers {
		if !p.farewell {
			sent, err := w.send(p, bye, 0, "")
			if err != nil {
				return err
			}
			p.farewell = sent
		}
		all = all && p.farewell && p.gone
	}
	if all && !isClosed(w.left) {
		close(w.left)
	}
	return nil
}

// tellFailure notifies each peer once of a failure, of this process or of another.
func (w *watch) tellFailure() error {
	err := w.failure.err()
	if err == nil {
		return nil
	}
	rank, text := w.comm.Rank(), err.Error()
	if remote, ok := err.(*RemoteError); ok {
		rank, text = remote.Rank, remote.Text
	}
	var errs []error
	for _, p := range w.peers {
		if p.told {
			continue
		}
		sent, err := w.send(p, failed, rank, text)
		p.told = sent || err != nil
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// send sends a note, unless the previous one is still in flight.
func (w *watch) send(p *peer, kind byte, rank int, text string) (sent bool, err error) {
	if done, err := p.send.Test(); err != nil || !done {
		return false, err
	}
	text = text[:min(len(text), noteBytes-headBytes)]
	note := p.out.Bytes
	note[0] = kind
	binary.LittleEndian.PutUint32(note[1:], uint32(rank))
	binary.LittleEndian.PutUint16(note[5:], uint16(len(text)))
	copy(note[headBytes:], text)
	return true, w.comm.Isend(&p.send, note[:headBytes+len(text)], p.rank, 0)
}

// count detects a peer that has been silent for too long, and notifies the others.
func (w *watch) count(gap time.Duration) {
	for _, p := range w.peers {
		if p.gone {
			continue // it has called Close, and waits for this process
		}
		if p.silent += gap; p.silent > w.patience() {
			w.fail(fmt.Errorf("mpi: no heartbeat from %s for %v: it has ended, or hangs", nameOf(p.rank, w.hosts),
				w.patience()))
			return
		}
	}
}

// farewell bounds the time of the last notes.
const farewell = time.Second

// stop sends pending notes and waits. Without a failure it cancels the receives; after a failure receives stay
// posted, and MPI is not finalized.
func (w *watch) stop() error {
	if err := w.tellFailure(); err != nil {
		return err
	}
	var errs []error
	for deadline, i := time.Now().Add(farewell), 0; i < len(w.peers); i++ {
		err := w.peers[i].send.Wait(context.Background(), max(0, time.Until(deadline)))
		if w.failure.err() == nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// RemoteError is the failure of another process.
type RemoteError struct {
	Rank int    // of the process
	Host string // of the process
	Text string // text of its error
	Kind error  // kind shared with errors of this process, see [Processes.Agree]; may be nil
}

// Unwrap returns the kind.
func (r *RemoteError) Unwrap() error { return r.Kind }

// Error names the process.
func (r *RemoteError) Error() string {
	return fmt.Sprintf("rank %d on host %s: %s", r.Rank, r.Host, r.Text)
}

// failure is the first known failure, of this process or another.
type failure struct {
	ctx   context.Context // ends with the failure
	end   context.CancelCauseFunc
	lock  sync.Mutex
	first error
}

func newFailure() *failure {
	ctx, end := context.WithCancelCause(context.Background())
	return &failure{ctx: ctx, end: end}
}

// set stores the first failure, and reports whether it was stored.
func (f *failure) set(err error) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.first != nil || err == nil {
		return false
	}
	f.first = err
	f.end(err)
	return true
}

func (f *failure) err() error {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.first
}

// nameOf returns the name of a process in errors.
func nameOf(rank int, hosts []string) string {
	return fmt.Sprintf("rank %d on host %s", rank, hosts[rank])
}
