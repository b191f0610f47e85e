package mpi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	binding "github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/internal/nccl"
	"github.com/halox/halox/streams"
)

// pairs holds NCCL communicators, each for the messages from one device to one device of another process. So
// messages never wait for those in the other direction, and both ends need to agree on only one order.
type pairs struct {
	library *nccl.Library
	log     *nccl.Log
	mpi     *binding.Library // for waits that also make progress in NCCL
	lock    sync.Mutex
	sending map[pairKey]*pair // pairs whose sender is this process
	coming  map[nccl.ID]*pair // pairs whose receiver is this process
}

// pairKey identifies the messages of a pair.
type pairKey struct {
	from  *streams.Device
	rank  int    // of the other process
	there uint64 // id of the other device
}

// pair is one end of a communicator.
type pair struct {
	id      nccl.ID
	device  *streams.Device
	sends   bool
	library *nccl.Library
	lock    sync.Mutex
	comm    *nccl.Comm // nil before it is created, and after abort
	failed  error      // why it is unusable
	turn    sync.Mutex // held by the message in flight, on the sender
	count   uint64     // of completed messages
}

// openPairs opens the library.
func openPairs(path string, mpi *binding.Library) (*pairs, error) {
	log, err := nccl.StartLog()
	if err != nil {
		return nil, fmt.Errorf("create a log for NCCL: %w", err)
	}
	l, err := nccl.Open(path)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &pairs{library: l, log: log, mpi: mpi, sending: map[pairKey]*pair{}, coming: map[nccl.ID]*pair{}}, nil
}

// to returns the pair to a device of another process.
func (p *pairs) to(k pairKey) (*pair, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if found := p.sending[k]; found != nil {
		return found, nil
	}
	id, err := p.library.NewID()
	if err != nil {
		return nil, err
	}
	made := &pair{id: id, device: k.from, sends: true, library: p.library}
	p.sending[k] = made
	return made, nil
}

// from returns the pair with an id created by the sending process.
func (p *pairs) from(id nccl.ID, d *streams.Device) *pair {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.coming[id] == nil {
		p.coming[id] = &pair{id: id, device: d, library: p.library}
	}
	return p.coming[id]
}

// The ranks of a pair.
const (
	rankOfSender   = 0
	rankOfReceiver = 1
)

// begin creates the communicator, once.
func (p *pair) begin() error {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.comm != nil || p.failed != nil {
		return p.failed
	}
	rank := rankOfReceiver
	if p.sends {
		rank = rankOfSender
	}
	return p.device.InContext(func() (err error) {
		p.comm, err = p.library.Begin(p.id, 2, rank)
		return err
	})
}

// queue begins to queue a message of a span.
func (p *pair) queue(s streams.Span, on *streams.Stream) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.failed != nil {
		return p.failed
	}
	return p.device.InContext(func() error {
		if p.sends {
			return p.comm.Send(s.Address(), s.Length, rankOfReceiver, on.Handle())
		}
		return p.comm.Receive(s.Address(), s.Length, rankOfSender, on.Handle())
	})
}

// ready reports whether NCCL has queued everything.
func (p *pair) ready() (bool, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.comm == nil || p.failed != nil {
		return false, p.failed
	}
	return p.comm.Ready()
}

// over returns the number of completed messages.
func (p *pair) over() uint64 {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.count
}

// next counts a completed message.
func (p *pair) next() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.count++
}

// abort ends the operations in flight, also on the device. Waits for the pair return the error.
func (p *pair) abort(why error) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.failed != nil {
		return nil
	}
	p.failed = why
	if p.comm == nil {
		return nil
	}
	return p.device.InContext(p.comm.Abort)
}

// errEnded is the error of the pairs of a closed session.
var errEnded = errors.New("NCCL: its communicators have ended")

// endLimit bounds the wait for the other process to end its end of a communicator.
const endLimit = 5 * time.Second

// end ends the communicator together with the other process, or on its own after endLimit.
func (p *pair) end(mpi *binding.Library) error {
	if ready, err := p.ready(); !ready || err != nil {
		return p.abort(errEnded)
	}
	if err := p.device.InContext(p.comm.Finalize); err != nil {
		return p.abort(errEnded)
	}
	late := func() error { return errEnded }
	if err := mpi.Await(context.Background(), endLimit, p.ready, late); err != nil {
		return p.abort(errEnded)
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.failed = errEnded
	return p.device.InContext(p.comm.Destroy)
}

// all returns all pairs, and removes them.
func (p *pairs) all() (all []*pair) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, one := range p.sending {
		all = append(all, one)
	}
	for _, one := range p.coming {
		all = append(all, one)
	}
	clear(p.sending)
	clear(p.coming)
	return all
}

// close ends all communicators, by force if a process has failed.
func (p *pairs) close(failed error) error {
	if p == nil {
		return nil
	}
	var group sync.WaitGroup
	all := p.all()
	errs := make([]error, len(all))
	for i, one := range all {
		group.Go(func() {
			if failed != nil {
				errs[i] = one.abort(failed)
			} else {
				errs[i] = one.end(p.mpi)
			}
		})
	}
	group.Wait()
	return errors.Join(append(errs, p.log.Close())...)
}

// String returns the library and its transports, if NCCL has reported them.
func (p *pairs) String() string {
	text := "NCCL " + p.library.Version
	if over := p.log.Transports(); len(over) > 0 {
		text += " over " + strings.Join(over, ", ")
	}
	return text
}
