package datatypes

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// pathIPC is the path between processes that map memory of each other.
const pathIPC = p2p.Path(mpi.IPC)

// processPaths returns the paths between processes.
func processPaths() []string { return []string{string(pathIPC), string(p2p.MPI)} }

// processPair is the processes between which messages are sent: one, or two of one host.
type processPair struct {
	processes *mpi.Processes
	device    *streams.Device      // of this one of two
	maps      bool                 // they map memory of each other
	tag       int                  // the first of two
	waits     *streams.WorkerGroup // for the other process
}

// meet prepares messages between two processes. Both call it.
func (p *processPair) meet(ctx context.Context) (err error) {
	if p.maps {
		if err := p.processes.TryIPC(ctx, []*streams.Device{p.device}); err != nil {
			return fmt.Errorf("--paths %s: %w", pathIPC, err)
		}
	}
	if err := p.processes.Use(mpi.Pieces, mpi.Pieces); err != nil {
		return err
	}
	p.waits = streams.NewWorkerGroup(p.processes.Size(), 2*p.processes.Limit())
	p.tag, err = p.processes.Tags(2)
	return err
}

// agree returns an error on all processes if one has an error or is interrupted. Engines that do not suit a layout are
// left out.
func (p *processPair) agree(ctx context.Context, mine error) error {
	return bench.AgreeToGoOn(ctx, p.processes, bench.LeaveOut(mine, packing.ErrUnsuited))
}

// half is the end of this process of messages to or from the other one. On path ipc the receiver gets them: the sender
// packs a fragment into a slot of its ring and signals that, and the receiver copies it from there, signals that the
// slot is free, and unpacks it (Wu et al. 4.1). On path mpi the message is one fragment, which MPI sends in pieces
// through pinned memory.
type half struct {
	resources      streams.Resources
	pair           *processPair
	ipc, sends     bool
	from           int            // rank of the sender
	size, fragment int64          // bytes
	jobs           []*packing.Job // nil if the message is not packed
	senders        []sender
	receivers      []receiver
	copies         []slotCopy      // of the receiver, unless it unpacks fragments where they arrive
	link           *streams.Stream // of the copies
	ready          *streams.Event  // the receiver's stream has reached the transfer
}

// slotCopy is the receiver's copy of a slot of the sender's ring.
type slotCopy struct {
	there, here   streams.Span
	copied, freed *streams.Event // freed: unpacked
}

type sender interface {
	Ready(group *streams.WorkerGroup, s *streams.Stream) error
	Send(s *streams.Stream) error
}

type receiver interface {
	Expect(s *streams.Stream)
	Receive(group *streams.WorkerGroup, s *streams.Stream) error
	Done(s *streams.Stream) error
}

// newHalf prepares the end whose side has a packer. Both processes call it. Path direct is that of a contiguous
// message, which is not packed: the driver copies it from mapped memory or, if ipc is not among the paths, MPI sends
// it.
func (p *processPair) newHalf(ctx context.Context, dst, src packing.Side, o packing.TransferOptions) (*half, error) {
	h := &half{pair: p, sends: dst.Packer == nil, from: p.processes.Rank, size: src.Message.Layout.Size()}
	h.fragment, h.ipc = h.size, o.Path == pathIPC || o.Path == p2p.Direct && p.maps
	side, ring := src, 1
	if !h.sends {
		side, h.from = dst, 1-h.from
	}
	if o.Path == pathIPC {
		h.fragment, ring = o.Fragments(h.size)
	}
	var bare streams.Span
	if o.Path == p2p.Direct {
		bare = side.Place.Data.Part(0, h.size)
	}
	o.Fragment = h.fragment
	buffers, err := h.open(ctx, min(ring, h.count()), bare, o.Remote)
	if err == nil && bare.Memory == nil {
		h.jobs, err = packing.NewFragments(side, !h.sends, buffers, o, &h.resources)
	}
	if err = p.agree(ctx, err); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// open connects the processes, and returns the buffers of fragments in this one. If bare is a span, it is the message.
func (h *half) open(ctx context.Context, ring int, bare streams.Span, remote bool) (buffers []streams.Span,
	err error) {
	p, d := h.pair.processes, h.pair.device
	name := fmt.Sprintf("from %s to %s", p.Name(h.from), p.Name(1-h.from))
	if !h.ipc {
		return h.openMPI(bare, "a message "+name)
	}
	all := make([]mpi.HostMessage, ring)
	for i := range all {
		all[i] = mpi.HostMessage{From: h.from, To: 1 - h.from, Bytes: h.fragment, Device: d, Get: true,
			Name: fmt.Sprintf("slot %d of the ring %s", i, name)}
	}
	m, err := p.NewHostMessages(ctx, all)
	if err != nil {
		return nil, err
	}
	h.resources.Add(m)
	r := &h.resources
	if !h.sends && !remote {
		h.link, h.ready = r.NewStream(d, streams.Urgent), r.NewEvent(d)
	}
	for i := range all {
		h.senders, h.receivers = append(h.senders, m.Sender(i)), append(h.receivers, m.Receiver(i))
		buffer := m.Span(i)
		if h.link != nil {
			c := slotCopy{there: buffer, here: bare, copied: r.NewEvent(d), freed: r.NewEvent(d)}
			if bare.Memory == nil {
				c.here = streams.Span{Memory: r.Alloc(d, h.fragment), Length: h.fragment}
			}
			h.copies, buffer = append(h.copies, c), c.here
		}
		buffers = append(buffers, buffer)
	}
	return buffers, r.Err()
}

// openMPI connects the processes by MPI.
func (h *half) openMPI(message streams.Span, name string) ([]streams.Span, error) {
	p, r, tag := h.pair.processes, &h.resources, h.pair.tag+h.from
	if message.Memory == nil {
		message = streams.Span{Memory: r.Alloc(h.pair.device, h.size), Length: h.size}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if h.sends {
		s, err := p.NewSender(message, 1-h.from, tag, name)
		if err == nil {
			r.Add(s)
		}
		h.senders = []sender{s}
		return []streams.Span{message}, err
	}
	x, err := p.NewReceiver(message, h.from, tag, name)
	if err == nil {
		r.Add(x)
	}
	h.receivers = []receiver{x}
	return []streams.Span{message}, err
}

// count returns the number of fragments.
func (h *half) count() int { return int((h.size + h.fragment - 1) / h.fragment) }

// Close frees the end. Closing twice is allowed.
func (h *half) Close() error { return h.resources.Close() }

// Queue implements transfer: the stream of this process is dst if it receives, and src if it sends. The host waits for
// the other process to queue what comes before.
func (h *half) Queue(dst, src *streams.Stream) error {
	one, s := h.send, src
	if !h.sends {
		one, s = h.receive, dst
	}
	if h.link != nil {
		if err := errors.Join(s.Record(h.ready), h.link.Wait(h.ready)); err != nil {
			return err
		}
	}
	for i := range h.count() {
		if err := one(i, s); err != nil {
			return err
		}
	}
	return nil
}

// send queues the packing of a fragment.
func (h *half) send(i int, s *streams.Stream) error {
	x := h.senders[i%len(h.senders)]
	if err := errors.Join(x.Ready(h.pair.waits, s), h.job(i, s)); err != nil {
		return err
	}
	return x.Send(s)
}

// receive queues the unpacking of a fragment, once the other process has queued its packing.
func (h *half) receive(i int, s *streams.Stream) error {
	slot := i % len(h.receivers)
	x := h.receivers[slot]
	if h.link == nil {
		x.Expect(s)
		return errors.Join(x.Receive(h.pair.waits, s), h.job(i, s), x.Done(s))
	}
	c, n := &h.copies[slot], min(h.fragment, h.size-int64(i)*h.fragment)
	if i >= len(h.receivers) {
		if err := h.link.Wait(c.freed); err != nil {
			return err
		}
	}
	x.Expect(h.link)
	if err := x.Receive(h.pair.waits, h.link); err != nil {
		return err
	}
	return errors.Join(h.link.Copy(c.here.Part(0, n), c.there.Part(0, n)), x.Done(h.link), h.link.Record(c.copied),
		s.Wait(c.copied), h.job(i, s), s.Record(c.freed))
}

// job queues the packing or the unpacking of a fragment.
func (h *half) job(i int, s *streams.Stream) error {
	if h.jobs == nil {
		return nil
	}
	return h.jobs[i].Queue(s)
}
