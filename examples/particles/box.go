package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
	"golang.org/x/sync/errgroup"
)

//go:embed particles.cu
var text string

// source is that of the kernels for blocks of so many threads.
func source(threads int) kernels.Source {
	return kernels.Source{Name: "particles.cu", Text: compare.Sums + text, Defines: []string{"THREADS=" + strconv.Itoa(threads)}, Mirrors: []kernels.Mirror{
		{Name: "Part", Value: part{}}, {Name: "Failure", Value: failure{}}, {Name: "Particle", Value: particle{}},
		{Name: "HEADER", Value: header}, {Name: "PARTICLE", Value: particleBytes},
		{Name: "TOO_MANY", Value: tooMany}, {Name: "TOO_FAST", Value: tooFast},
	}}
}

// ErrRun wraps what a run of particles fails of: a segment with more than its capacity, or a particle that moves further
// in a step than to the next segment.
var ErrRun = errors.New("the run is not valid")

// problem is a box of particles, and how it is cut.
type problem struct {
	width     float64 // of the box, in units of the cutoff
	segments  int     // of a device, each of height 1
	particles int     // of a device
	capacity  int     // of a segment; 0: by the number of particles
	dt        float64
}

// settings are what the flags say: a problem, of which what is 0 is that of a size with a name.
type settings struct {
	size                          string
	width, dt                     float64
	segments, particles, capacity int
}

// sizes are the problems that have names: those of the thesis are of 41600 particles in 416 x 416.
var sizes = map[string]problem{
	"small":  {width: 104, segments: 64, particles: 1600},
	"thesis": {width: 416, segments: 416, particles: 41600},
	"full":   {width: 416, segments: 40 * 416, particles: 40 * 41600},
}

// problem is what the flags say.
func (s *settings) problem() problem {
	named := sizes[s.size]
	return problem{cmp.Or(s.width, named.width), cmp.Or(s.segments, named.segments), cmp.Or(s.particles, named.particles), s.capacity, s.dt}
}

// check returns an error unless the problem can be run.
func (s *settings) check() error {
	const most = 1 << 20
	if _, known := sizes[s.size]; !known {
		return fmt.Errorf("--size %s: want small, thesis or full", s.size)
	}
	switch p := s.problem(); {
	case !(p.width > 0) || p.width > most:
		return fmt.Errorf("--width %g: a number above 0 up to %d is possible", p.width, most)
	case p.segments < 1 || p.segments > most:
		return fmt.Errorf("--segments %d: 1 to %d are possible", p.segments, most)
	case p.particles < 1 || p.particles > 1<<30:
		return fmt.Errorf("--particles %d: 1 to %d are possible", p.particles, 1<<30)
	case p.capacity < 0 || p.capacity > most:
		return fmt.Errorf("--capacity %d: 0 to %d are possible", p.capacity, most)
	case !(p.dt > 0) || p.dt > 1:
		return fmt.Errorf("--dt %g: a number above 0 up to 1 is possible", p.dt)
	}
	return nil
}

// room is the capacity of a segment: what was asked for, or twice the particles that it has on average and 64, a
// multiple of 32.
func (p problem) room() int64 {
	if p.capacity > 0 {
		return int64(p.capacity)
	}
	return int64(2*p.particles/p.segments+64+31) / 32 * 32
}

// box is the memory of a problem on devices, by which both methods step it.
type box struct {
	devices  []*streams.Device
	parts    []part
	slots    []*streams.Memory // of each device
	failures []*streams.Memory
	staging  []*streams.Memory // pinned: slots, and then the failure
	placed   bool              // staging still has what load put there: nothing was read since
	copying  []*streams.Stream
	open     streams.Resources
}

// newBox allocates the memory of a problem on the devices of a session.
func newBox(s *halo.Session, p problem) (made *box, err error) {
	b := &box{devices: s.Devices}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.open.Close())
		}
	}()
	for i, d := range s.Devices {
		q := part{Segments: int64(p.segments), First: int64(i * p.segments), All: int64(len(s.Devices) * p.segments), Capacity: p.room(), Width: p.width, Dt: p.dt}
		slots, err := d.Alloc(q.slotBytes())
		if err != nil {
			return nil, err
		}
		b.open.Add(slots)
		failed, err := d.Alloc(32)
		if err != nil {
			return nil, err
		}
		b.open.Add(failed)
		staging, err := d.AllocPinned(q.slotBytes() + 32)
		if err != nil {
			return nil, err
		}
		b.open.Add(staging)
		stream, err := d.NewStream(streams.Normal)
		if err != nil {
			return nil, err
		}
		b.open.Add(stream)
		q.Slots, q.Failure = slots.Address(), failed.Address()
		b.parts, b.slots, b.failures = append(b.parts, q), append(b.slots, slots), append(b.failures, failed)
		b.staging, b.copying = append(b.staging, staging), append(b.copying, stream)
	}
	return b, nil
}

// Close frees the memory. Closing twice is no error.
func (b *box) Close() error { return b.open.Close() }

// board is the part of a host device.
func (b *box) board(device int) board {
	return board{&b.parts[device], b.slots[device].Bytes(), &streams.View[failure](b.failures[device].Bytes()[:24])[0]}
}

// staged is the copy of a part in pinned memory.
func (b *box) staged(device int) board {
	bytes, n := b.staging[device].Bytes(), b.parts[device].slotBytes()
	return board{&b.parts[device], bytes[:n], &streams.View[failure](bytes[n : n+24])[0]}
}

// load puts particles into their segments, which hold them in order of ids, and into the copies that neighbours have.
// Ids are all different, and places within the box. It refuses a segment with more particles than its capacity.
func (b *box) load(all []particle) error {
	b.placed = false
	if err := b.place(all); err != nil {
		return err
	}
	b.placed = true
	return b.upload()
}

// upload copies what load has placed to the devices. It may be called again where b.placed.
func (b *box) upload() error {
	for i := range b.devices {
		n := b.parts[i].slotBytes()
		err := errors.Join(b.copying[i].Copy(b.slots[i].All(), b.staging[i].Span(0, n)), b.copying[i].Copy(b.failures[i].All(), b.staging[i].Span(n, 32)))
		if err != nil {
			return err
		}
	}
	return b.sync()
}

// place puts particles into pinned memory, as load copies them.
func (b *box) place(all []particle) error {
	all = slices.SortedFunc(slices.Values(all), func(p, q particle) int { return int(p.Id - q.Id) })
	var devices errgroup.Group
	for i := range b.devices {
		devices.Go(func() error {
			to := b.staged(i)
			clear(b.staging[i].Bytes())
			for _, p := range all {
				index := min(int64(p.Y), to.All-1) - to.First
				if index < -1 || index > to.Segments {
					continue
				}
				s := to.state(index, listState)
				s.set(*s.count, p)
				if *s.count++; *s.count > to.Capacity {
					return fmt.Errorf("particles: segment %d has more than its capacity of %d particles: %w", index+to.First, to.Capacity, ErrRun)
				}
			}
			return nil
		})
	}
	return devices.Wait()
}

// read returns the particles of all devices, in order of ids. It returns what the run failed of, if it did.
func (b *box) read() (all []particle, err error) {
	b.placed = false
	for i := range b.devices {
		n := b.parts[i].slotBytes()
		err := errors.Join(b.copying[i].Copy(b.staging[i].Span(0, n), b.slots[i].All()), b.copying[i].Copy(b.staging[i].Span(n, 32), b.failures[i].All()))
		if err != nil {
			return nil, err
		}
	}
	if err := b.sync(); err != nil {
		return nil, err
	}
	for i := range b.devices {
		from := b.staged(i)
		if err := from.failed(); err != nil {
			return nil, fmt.Errorf("particles: %v: %w", b.devices[i], err)
		}
		for s := range from.Segments {
			list := from.state(s, listState)
			for n := range *list.count {
				all = append(all, list.at(n))
			}
		}
	}
	slices.SortFunc(all, func(p, q particle) int { return int(p.Id - q.Id) })
	return all, nil
}

// failed returns what the device failed of.
func (b board) failed() error {
	f := b.failure
	switch f.What {
	case tooMany:
		return fmt.Errorf("segment %d got %d particles, its capacity is %d: %w", f.Segment, f.Count, b.Capacity, ErrRun)
	case tooFast:
		return fmt.Errorf("particle %d left segment %d for one that is not beside it: %w", f.Count, f.Segment, ErrRun)
	}
	return nil
}

func (b *box) sync() error {
	for _, s := range b.copying {
		if err := s.Sync(30 * time.Second); err != nil {
			return err
		}
	}
	return nil
}
