package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/bench/trial"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// end is where a message begins or ends: the memory of a device, or host memory that the
// device has pinned.
type end struct {
	device *streams.Device
	pinned bool
}

// label returns the name of the end in rows.
func (e end) label() any {
	if e.pinned {
		return "host"
	}
	return e.device.ID
}

func (e end) alloc(bytes int64, open *streams.Resources) *streams.Memory {
	if e.pinned {
		return open.AllocPinned(e.device, bytes)
	}
	return open.Alloc(e.device, bytes)
}

// Copies that are not links: their rates bound those of the others.
const (
	devicePath = "device" // a copy within the memory of a device
	pinnedPath = "pinned" // between pinned host memory and a device
)

// hop is a connection for messages: a path, or one of devicePath and pinnedPath.
type hop struct {
	path     string
	from, to end
}

// between returns the hop by a path from one device to another.
func between(path p2p.Path, from, to *streams.Device) hop {
	return hop{string(path), end{from, false}, end{to, false}}
}

// back returns the hop in the other direction.
func (h hop) back() hop { return hop{h.path, h.to, h.from} }

// fabric is the links that are measured.
type fabric struct {
	links    *p2p.Links
	compiler *kernels.Compiler
	largest  int64         // message
	tried    map[hop]error // result of the test with random bytes
}

func newFabric(links *p2p.Links, compiler *kernels.Compiler, largest int64) *fabric {
	return &fabric{links, compiler, largest, map[hop]error{}}
}

// passable returns an error unless the hop is usable.
func (f *fabric) passable(h hop) error {
	if h.from.device == h.to.device {
		return nil
	}
	if _, _, err := f.links.Choose(p2p.Path(h.path), h.from.device, h.to.device, p2p.MessageShape{}); err != nil {
		return bench.LeaveOut(err)
	}
	return nil
}

// kind returns the kind of the links of all hops, "" if they differ or there are none.
func (f *fabric) kind(hops ...hop) string {
	kind := ""
	for i, h := range hops {
		link := f.links.Between(h.from.device, h.to.device)
		if link == nil || i > 0 && link.Kind != kind {
			return ""
		}
		kind = link.Kind
	}
	return kind
}

func paths() []string { return option.Texts(p2p.Paths()) }

// ready returns a tested sender for messages up to the largest size.
func (f *fabric) ready(h hop, open *streams.Resources) (*sender, error) {
	if err := f.passable(h); err != nil {
		return nil, err
	}
	c, err := f.newSender(h, open)
	if err != nil {
		return nil, err
	}
	if _, known := f.tried[h]; !known {
		f.tried[h] = c.try()
	}
	return c, f.tried[h]
}

// sender sends messages of one size by a hop, one after the other.
type sender struct {
	hop
	compiler   *kernels.Compiler
	src, dst   *streams.Memory
	home       *streams.Stream // of the sender: a message begins when the previous one has arrived
	there      *streams.Stream // of the receiver
	start, end *streams.Event  // timed, of home
	send       func() error    // queues a message
	operations int             // per stream that a message uses
}

// newSender allocates memory for the largest size.
func (f *fabric) newSender(h hop, open *streams.Resources) (*sender, error) {
	return &sender{
		hop: h, compiler: f.compiler, src: h.from.alloc(f.largest, open), dst: h.to.alloc(f.largest, open),
		home: open.NewStream(h.from.device, streams.Normal), there: open.NewStream(h.to.device, streams.Normal),
		start: open.NewTimedEvent(h.from.device), end: open.NewTimedEvent(h.from.device),
	}, open.Err()
}

// load prepares messages of a size.
func (c *sender) load(bytes int64, open *streams.Resources) error {
	dst, src := c.dst.Span(0, bytes), c.src.Span(0, bytes)
	c.operations = 1
	switch path := p2p.Path(c.path); {
	case path.Traits().Stored:
		return c.loadStore(dst, src, open)
	case slices.Contains(p2p.Paths(), path):
		return c.loadRoute(dst, src, open)
	}
	c.send = func() error { return c.home.Copy(dst, src) }
	return nil
}

// loadStore has a kernel of the sender store into the receiver's memory.
func (c *sender) loadStore(dst, src streams.Span, open *streams.Resources) error {
	copier, err := pack.NewBoxCopier(c.compiler, c.from.device)
	if err != nil {
		return err
	}
	size := domain.Vec{int(dst.Length), 1, 1}
	k, err := copier.Copies("store", pack.Copy{Dst: pack.Dense(dst, size), Src: pack.Dense(src, size), Size: size,
		ElementSize: 1})
	if err != nil {
		return err
	}
	open.Add(k)
	c.send = func() error { return c.home.Launch(k.Kernel) }
	return nil
}

// loadRoute uses a route, as exchanges do. If the receiver takes part in it, the next message is written to the
// intermediate memory when this one has left it.
func (c *sender) loadRoute(dst, src streams.Span, open *streams.Resources) error {
	route, err := p2p.NewRoute(p2p.Path(c.path), dst, src)
	if err != nil {
		return err
	}
	open.Add(route)
	push, pull := route.Copies()
	if pull == 0 {
		c.operations = push
		c.send = func() error { return route.Push(c.home) }
		return nil
	}
	sent, arrived := open.NewEvent(c.from.device), open.NewEvent(c.to.device)
	c.operations = 2 + max(push, pull)
	c.send = func() error {
		return errors.Join(route.Push(c.home), c.home.Record(sent), c.there.Wait(sent),
			route.Pull(c.there), c.there.Record(arrived), c.home.Wait(arrived))
	}
	return open.Err()
}

// maxTried is the number of bytes with which a hop is tested.
const maxTried = 16 << 20

// try sends random bytes to memory in which every byte differs, and compares the received bytes.
func (c *sender) try() (err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	bytes := min(c.src.Size(), maxTried)
	if err := c.load(bytes, &open); err != nil {
		return err
	}
	source, err := trial.NewMirror(c.from.device, c.src.Span(0, bytes), &open)
	if err != nil {
		return err
	}
	target, err := trial.NewMirror(c.to.device, c.dst.Span(0, bytes), &open)
	if err != nil {
		return err
	}
	want := make([]byte, bytes)
	rand.NewChaCha8([32]byte{byte(c.from.device.ID), byte(c.to.device.ID)}).Read(want)
	for i, b := range want {
		source.Bytes()[i], target.Bytes()[i] = b, ^b
	}
	for _, step := range []func() error{
		func() error { return source.Upload(c.home) }, func() error { return target.Upload(c.there) }, c.settle,
		c.send, c.settle,
		func() error { return target.Download(c.there) }, c.settle,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := p2p.Compare(c.from.device, c.to.device, want, target.Bytes()); err != nil {
		return bench.LeaveOut(fmt.Errorf("path %s from %v to %v: %w", c.path, c.from.label(), c.to.label(), err))
	}
	return nil
}

// settle waits for both streams.
func (c *sender) settle() error {
	return errors.Join(c.home.Sync(timing.Limit), c.there.Sync(timing.Limit))
}

// senderGroup is the senders that send at once, and the gate behind which their messages wait until all are queued, so
// that the times are those of devices and links, not those of the host.
//
// The clocks of two devices are not synchronized, so only the clock of the first sender's device is used. It starts
// behind the gate. The others begin after an event that signals its start, and it stops after events that signal the
// arrival of the last message of each. So the time covers everything from the first start to the last end, and includes
// any time during which not all are sending. It also includes the time of an event to another device and one back, some
// microseconds.
type senderGroup struct {
	senders []*sender
	gate    *flags.Gate // of the first sender's device
}

// newSenderGroup makes senders of the hops that have been tried, and their gate.
func (f *fabric) newSenderGroup(hops []hop, open *streams.Resources) (t *senderGroup, err error) {
	t = &senderGroup{}
	for _, h := range hops {
		c, err := f.ready(h, open)
		if err != nil {
			return nil, err
		}
		t.senders = append(t.senders, c)
	}
	streams.Into(open, &t.gate)(flags.NewGate(f.compiler, hops[0].from.device, timing.GateLimit))
	return t, open.Err()
}

// time returns the time of one message of that size by each of the senders, all at once, in
// microseconds.
func (t *senderGroup) time(ctx context.Context, bytes int64, p measure.Pace) (us results.Sample, err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	for _, c := range t.senders {
		if err := c.load(bytes, &open); err != nil {
			return us, err
		}
		if err := errors.Join(c.send(), c.settle()); err != nil { // the first launch of a kernel might wait for a gate
			return us, err
		}
	}
	p.Max = min(p.Max, t.most())
	return p.Measure(ctx, t.batch)
}

// most returns the maximum number of messages of each sender that are queued behind the gate, so that no device has
// more than timing.MaxGated operations.
func (t *senderGroup) most() int {
	each := map[*streams.Device]int{}
	for _, c := range t.senders {
		each[c.from.device] += c.operations
		if c.operations > 1 { // the receiver has as many
			each[c.to.device] += c.operations
		}
	}
	busiest := 1
	for _, operations := range each {
		busiest = max(busiest, operations)
	}
	return max(1, timing.MaxGated/busiest-1)
}

// batch returns the time of n messages by each of the senders, divided by n, in microseconds. All queued work is done
// when it returns, even after an error.
func (t *senderGroup) batch(n int) (float64, error) {
	first := t.senders[0]
	if err := t.gate.Shut(first.home); err != nil {
		return 0, err
	}
	err := errors.Join(t.queue(n), t.gate.Open())
	for _, c := range t.senders {
		err = cmp.Or(err, c.settle())
	}
	if err != nil {
		return 0, err
	}
	took, err := first.end.Since(first.start)
	return took.Seconds() * 1e6 / float64(n), err
}

// queue makes each sender send n messages, in turns, between the start and the end of the first one's clock. Another
// message precedes them, so that the device is already active when the clock starts.
func (t *senderGroup) queue(n int) error {
	first, others := t.senders[0], t.senders[1:]
	err := errors.Join(first.send(), first.home.Record(first.start))
	for _, c := range others {
		err = cmp.Or(err, c.home.Wait(first.start))
	}
	for range n {
		for _, c := range t.senders {
			if err != nil {
				return err
			}
			err = c.send()
		}
	}
	for _, c := range others {
		err = cmp.Or(err, errors.Join(c.home.Record(c.end), first.home.Wait(c.end)))
	}
	return cmp.Or(err, first.home.Record(first.end))
}
