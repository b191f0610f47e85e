package example

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Typed is the flags of an example whose devices exchange MPI datatypes, and what it has on the devices of a session.
type Typed struct {
	*halo.Session
	streams.Resources
	Engine string // that packs and unpacks
	Each   bool   // a launch for each vector
	Path   string
	Steps  int

	queues  []*streams.Stream
	packers []*packing.Packer
}

// Flags adds the flags.
func (x *Typed) Flags(f *flag.FlagSet) {
	engines := append(packing.Engines(), packing.Auto)
	f.StringVar(&x.Engine, "engine", string(packing.Auto), fmt.Sprintf("engine of the messages: one of %v", engines))
	f.BoolVar(&x.Each, "each", false, "engine transform: a launch for each vector")
	f.StringVar(&x.Path, "path", string(p2p.Auto), "path of messages: "+p2p.Choices(p2p.Paths()))
	f.IntVar(&x.Steps, "steps", x.Steps, "time steps")
}

// Open makes a stream and a packer for each device of the session.
func (x *Typed) Open(s *halo.Session) error {
	if x.Steps < 1 {
		return errors.New("--steps must be at least 1")
	}
	x.Session, x.queues, x.packers = s, nil, nil
	for _, d := range s.Devices {
		x.queues = append(x.queues, x.NewStream(d, streams.Normal))
		var p *packing.Packer
		streams.Into(&x.Resources, &p)(packing.New(s.Compiler, d, packing.Options{Each: x.Each}))
		x.packers = append(x.packers, p)
	}
	return x.Err()
}

// Close frees everything. The session stays open.
func (x *Typed) Close() error { return x.Resources.Close() }

// End is an element of a type in memory of a device.
type End struct {
	Device int
	Memory *streams.Memory
	Type   *datatype.Type
	Origin int64 // offset of displacement 0, in bytes
}

// Message is a transfer from device to device that can be queued.
type Message struct {
	transfer *packing.Transfer
	dst, src *streams.Stream
}

// Message prepares a message of one element.
func (x *Typed) Message(to, from End) (m Message, err error) {
	side := func(e End) (s packing.Side) {
		s.Packer, s.Place = x.packers[e.Device], packing.Place{Data: e.Memory.All(), Origin: e.Origin}
		var failed error
		s.Message, failed = packing.NewMessageLayout(e.Type, 1)
		err = errors.Join(err, failed)
		return s
	}
	dst, src := side(to), side(from)
	if err != nil {
		return m, err
	}
	m.dst, m.src = x.queues[to.Device], x.queues[from.Device]
	streams.Into(&x.Resources, &m.transfer)(packing.NewTransfer(dst, src,
		packing.TransferOptions{Path: p2p.Path(x.Path), Engine: packing.Engine(x.Engine)}))
	return m, x.Err()
}

// Exchange queues messages, one after the other where they share a device.
func Exchange(all []Message) error {
	for _, m := range all {
		if err := m.transfer.Queue(m.dst, m.src); err != nil {
			return err
		}
	}
	return nil
}

// Launches queues a kernel on each device.
func (x *Typed) Launches(all []*streams.Kernel) (err error) {
	for i, k := range all {
		err = errors.Join(err, x.queues[i].Launch(k))
	}
	return err
}

// Wait waits for all devices.
func (x *Typed) Wait() (err error) {
	for _, q := range x.queues {
		err = errors.Join(err, q.Sync(streams.UploadLimit))
	}
	return err
}

// Kernel adds a kernel of a source to those of a device. The argument is the only parameter; a GPU runs it with a
// thread for each of count points, a CPU device calls host.
func Kernel[T any](
	x *Typed, d *streams.Device, source kernels.Source, name string, count int, uses []*streams.Memory, argument T, host func(),
) (k *streams.Kernel, err error) {
	found, err := x.Compiler.Functions(d, source, name)
	if err != nil {
		return nil, err
	}
	spec := kernels.LaunchSpec[T]{
		Name: name, Host: host, Function: found[0], Argument: argument, Grid: [3]int{(count + 127) / 128, 1, 1},
		Block: [3]int{128, 1, 1},
	}
	for _, m := range uses {
		spec.Uses = append(spec.Uses, m.All())
	}
	streams.Into(&x.Resources, &k)(kernels.Launch(d, spec))
	return k, x.Err()
}

// Time returns the time of one of n repetitions by the host's clock, after those that are queued already.
func (x *Typed) Time(n int, one func(i int) error) (time.Duration, error) {
	if err := x.Wait(); err != nil {
		return 0, err
	}
	start := time.Now()
	for i := range n {
		if err := one(i); err != nil {
			return 0, err
		}
	}
	err := x.Wait()
	return time.Since(start) / time.Duration(n), err
}

// String names the engine, the path and the devices.
func (x *Typed) String() string {
	each := ""
	if x.Each {
		each = " with a launch per vector"
	}
	return strings.TrimSpace(fmt.Sprintf("engine %s%s, path %s, on %v", x.Engine, each, x.Path, x.Session))
}
