package links

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/bench/trial"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// ready returns a sender for messages up to the largest size, after it has tried it.
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
	home       *streams.Stream // of the sender, on which a message begins when the one before has arrived
	there      *streams.Stream // of the receiver
	start, end *streams.Event  // timed, of home
	send       func() error    // queues a message
	operations int             // on each of the streams that a message takes
}

// newSender makes memory for the largest size.
func (f *fabric) newSender(h hop, open *streams.Resources) (c *sender, err error) {
	c = &sender{hop: h, compiler: f.compiler}
	if c.src, err = h.from.alloc(f.largest); err != nil {
		return nil, err
	}
	open.Add(c.src)
	if c.dst, err = h.to.alloc(f.largest); err != nil {
		return nil, err
	}
	open.Add(c.dst)
	if c.home, err = h.from.device.NewStream(streams.Normal); err != nil {
		return nil, err
	}
	open.Add(c.home)
	if c.there, err = h.to.device.NewStream(streams.Normal); err != nil {
		return nil, err
	}
	open.Add(c.there)
	for _, e := range []**streams.Event{&c.start, &c.end} {
		if *e, err = h.from.device.NewTimedEvent(); err != nil {
			return nil, err
		}
		open.Add(*e)
	}
	return c, nil
}

// load makes messages of a size ready.
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
	k, err := copier.Copies("store", pack.Copy{Dst: pack.Dense(dst, size), Src: pack.Dense(src, size), Size: size, ElementSize: 1})
	if err != nil {
		return err
	}
	open.Add(k)
	c.send = func() error { return c.home.Launch(k.Kernel) }
	return nil
}

// loadRoute goes along a route, as exchanges do. Where the receiver has a part in it, the next
// message comes into the memory between them when this one has left it.
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
	sent, err := c.from.device.NewEvent()
	if err != nil {
		return err
	}
	open.Add(sent)
	arrived, err := c.to.device.NewEvent()
	if err != nil {
		return err
	}
	open.Add(arrived)
	c.operations = 2 + max(push, pull)
	c.send = func() error {
		return errors.Join(route.Push(c.home), c.home.Record(sent), c.there.Wait(sent),
			route.Pull(c.there), c.there.Record(arrived), c.home.Wait(arrived))
	}
	return nil
}

// maxTried is how many bytes a hop is tried with.
const maxTried = 16 << 20

// try sends random bytes, where no byte is right before, and compares what arrived.
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
		return &impassable{fmt.Errorf("path %s from %v to %v: %w", c.path, c.from.label(), c.to.label(), err)}
	}
	return nil
}

// settle waits for both streams.
func (c *sender) settle() error {
	return errors.Join(c.home.Sync(timing.Limit), c.there.Sync(timing.Limit))
}
