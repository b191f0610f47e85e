// Package halotest checks exchanges of ghost regions against geometry alone. It
// gives every point of a field a value made of its place in the whole grid,
// poisons the ghosts, has them exchanged, and compares every point with what its
// place says. It shares nothing with the code that plans and carries out
// exchanges, and a program that embeds halo may call it from its own tests.
package halotest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// limit is how long a device may take for anything here.
const limit = 60 * time.Second

// Case is an exchange to be checked.
type Case struct {
	Placement *halo.Placement
	Links     *p2p.Links
	Compiler  *kernels.Compiler
	Path      p2p.Path
	Specs     []halo.Spec // of fields that are exchanged together, each of its own
	// Rounds is how many exchanges follow each other without the host waiting
	// in between; less than 1 counts as 3.
	Rounds int
	// Late reports whether the stream of a subdomain is held up for some
	// milliseconds at the start of a round. An exchange that does not wait for it
	// shows then, and not only by bad luck. nil for never.
	Late func(round, rank int) bool
	// Exchange carries one out; nil for Exchanger.Exchange.
	Exchange func(x *halo.Exchanger, at []*streams.Stream) error
}

// Run carries out the case on fields of its own and returns the first point that is
// wrong, with what it holds and what it should hold, in bytes, or whatever failed.
// Ghosts behind physical faces hold the same of each place in all subdomains, and are to hold that afterwards: an
// exchange may bring those beside a neighbor from there. All other ghosts that no exchange brings are to stay as they
// were.
func (c Case) Run() (err error) {
	var open streams.Resources
	defer func() {
		if e := open.Close(); err == nil {
			err = e
		}
	}()
	plan, err := halo.NewPlan(c.Placement, c.Links, c.Path, c.Specs...)
	if err != nil {
		return err
	}
	var fields []*halo.Field
	for _, s := range c.Specs {
		f, err := halo.NewField(c.Placement, s)
		if err != nil {
			return err
		}
		open.Add(f)
		fields = append(fields, f)
	}
	x, err := halo.NewExchanger(plan, c.Compiler, fields...)
	if err != nil {
		return err
	}
	open.Add(x)
	r := &trial{Case: c, fields: fields, exchanger: x, open: &open}
	return r.run()
}

// trial is a case under way.
type trial struct {
	Case
	fields    []*halo.Field
	exchanger *halo.Exchanger
	open      *streams.Resources
	at        []*streams.Stream
	delays    []*delay // by rank; nil if none is late
}

// block is one array of one subdomain, with what went into it and came out of it
// in one round.
type block struct {
	field, rank, component, round int
	in, out                       *streams.Memory
}

// run puts the values of every round onto the devices, exchanges them and brings
// them back, all queued at once, and then compares.
func (t *trial) run() error {
	for _, d := range t.Placement.Devices {
		if d == nil { // of another process
			t.at, t.delays = append(t.at, nil), append(t.delays, nil)
			continue
		}
		s, err := d.NewStream(streams.Normal)
		if err != nil {
			return err
		}
		t.open.Add(s)
		t.at = append(t.at, s)
		if t.Late == nil {
			t.delays = append(t.delays, nil)
			continue
		}
		l, err := newDelay(d, t.open)
		if err != nil {
			return err
		}
		t.delays = append(t.delays, l)
	}
	rounds := t.Rounds
	if rounds < 1 {
		rounds = 3
	}
	var blocks []*block
	for round := range rounds {
		made, err := t.prepare(round)
		if err != nil {
			return err
		}
		blocks = append(blocks, made...)
	}
	for round := range rounds {
		if err := t.holdUp(round); err != nil {
			return err
		}
		if err := t.queue(blocks[round*len(blocks)/rounds : (round+1)*len(blocks)/rounds]); err != nil {
			return err
		}
	}
	for _, s := range t.at {
		if s == nil {
			continue
		}
		if err := s.Sync(limit); err != nil {
			return err
		}
	}
	for _, b := range blocks {
		if err := t.compare(b); err != nil {
			return err
		}
	}
	return nil
}

// prepare fills host memory with the values of one round. Every ghost is wrong
// at first, or the comparison would show nothing.
func (t *trial) prepare(round int) (blocks []*block, err error) {
	for i, f := range t.fields {
		for rank := range f.Parts {
			if !t.Placement.IsLocal(rank) {
				continue
			}
			for c := range arrays(f) {
				b := &block{field: i, rank: rank, component: c, round: round}
				for _, m := range []**streams.Memory{&b.in, &b.out} {
					if *m, err = t.Placement.Devices[rank].AllocPinned(f.Array(rank, c).Data.Length); err != nil {
						return nil, err
					}
					t.open.Add(*m)
				}
				t.eachPoint(b, func(p domain.Vec, bytes []byte) error {
					t.before(b, p, bytes)
					return nil
				}, b.in)
				blocks = append(blocks, b)
			}
		}
	}
	return blocks, nil
}

// holdUp makes late who is late in a round.
func (t *trial) holdUp(round int) error {
	for rank, l := range t.delays {
		if l == nil || !t.Late(round, rank) {
			continue
		}
		if err := l.queue(t.at[rank]); err != nil {
			return err
		}
	}
	return nil
}

// queue queues one round.
func (t *trial) queue(blocks []*block) error {
	for _, b := range blocks {
		if err := t.at[b.rank].Copy(t.fields[b.field].Array(b.rank, b.component).Data, b.in.All()); err != nil {
			return err
		}
	}
	exchange := t.Exchange
	if exchange == nil {
		exchange = func(x *halo.Exchanger, at []*streams.Stream) error { return x.Exchange(at) }
	}
	if err := exchange(t.exchanger, t.at); err != nil {
		return err
	}
	for _, b := range blocks {
		if err := t.at[b.rank].Copy(b.out.All(), t.fields[b.field].Array(b.rank, b.component).Data); err != nil {
			return err
		}
	}
	return nil
}

// arrays returns how many arrays a subdomain has of the field.
func arrays(f *halo.Field) int {
	if f.Spec.SoA {
		return max(1, f.Spec.Components)
	}
	return 1
}

// eachPoint calls f with every point of a block, ghosts included, and its bytes in
// the memory.
func (t *trial) eachPoint(b *block, f func(p domain.Vec, bytes []byte) error, m *streams.Memory) error {
	field := t.fields[b.field]
	l := field.Array(b.rank, b.component).Layout
	size := int64(l.ElementSize)
	box := field.Cut.Subdomains[b.rank].Box.Grow(field.Spec.Width)
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		for y := box.Lo[1]; y < box.Hi[1]; y++ {
			for x := box.Lo[0]; x < box.Hi[0]; x++ {
				p := domain.Vec{x, y, z}
				at := l.Offset(p) * size
				if err := f(p, m.Bytes()[at:at+size]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// poison is what ghosts hold before an exchange, a byte.
const poison = 0xA5

// before sets the bytes of a point: an owned one to its value, a ghost behind a physical face to another value of its
// place, and all other ghosts to poison.
func (t *trial) before(b *block, p domain.Vec, bytes []byte) {
	f := t.fields[b.field]
	if f.Cut.Subdomains[b.rank].Box.Contains(p) {
		value(bytes, b, f.Cut.Grid, p)
		return
	}
	behind := false
	for a, n := range f.Cut.Grid.Size {
		if f.Cut.Grid.Periodic[a] {
			p[a] = (p[a] + n) % n
		}
		behind = behind || p[a] < 0 || p[a] >= n
	}
	value(bytes, b, f.Cut.Grid, p)
	for i := range bytes {
		if bytes[i] = ^bytes[i]; !behind {
			bytes[i] = poison
		}
	}
}

// compare looks at every point of a block after its exchange.
func (t *trial) compare(b *block) error {
	f := t.fields[b.field]
	own := f.Cut.Subdomains[b.rank].Box
	want := make([]byte, f.Array(b.rank, b.component).Layout.ElementSize)
	sent := make([]byte, len(want))
	moved := moved(f.Spec, len(want))
	return t.eachPoint(b, func(p domain.Vec, got []byte) error {
		q, reached := source(f, b.component, own, p)
		t.before(b, p, want)
		if reached {
			value(sent, b, f.Cut.Grid, q)
			for i, moves := range moved {
				if moves {
					want[i] = sent[i]
				}
			}
		}
		if string(got) == string(want) {
			return nil
		}
		return fmt.Errorf("halotest: round %d, field %q, component %d, subdomain %d on device %v, which owns %v: "+
			"point %v holds %x; it stands for point %v and should hold %x",
			b.round, f.Spec.Name, b.component, b.rank, f.Placement.Devices[b.rank], own, p, got, q, want)
	}, b.out)
}

// moved reports which bytes of a point an exchange moves: all but the gaps of a type, as the
// definition of unpacking has them.
func moved(s halo.Spec, bytes int) []bool {
	touched := make([]byte, bytes)
	if s.Type == nil {
		for i := range touched {
			touched[i] = 1
		}
	} else {
		count := bytes / int(s.Type.Extent())
		packed := slices.Repeat([]byte{1}, count*int(s.Type.Size()))
		if err := datatype.Unpack(touched, -s.Type.LB(), packed, s.Type, count); err != nil {
			panic(err) // the field was made of the type
		}
	}
	moves := make([]bool, bytes)
	for i, b := range touched {
		moves[i] = b != 0
	}
	return moves
}

// source returns the owned point that a point of a subdomain stands for, and
// whether the field's exchange brings it: not behind physical faces, not across edges
// or corners beyond its connectivity, and not beyond the component's own width.
func source(f *halo.Field, component int, own domain.Box, p domain.Vec) (q domain.Vec, reached bool) {
	q = p
	across := 0
	width := f.Spec.Width
	if f.Spec.Widths != nil {
		width = f.Spec.Widths[component]
	}
	for a, n := range f.Cut.Grid.Size {
		if p[a] < own.Lo[a]-width.Minus[a] || p[a] >= own.Hi[a]+width.Plus[a] {
			return q, false
		}
		if p[a] < own.Lo[a] || p[a] >= own.Hi[a] {
			across++
		}
		if p[a] >= 0 && p[a] < n {
			continue
		}
		if !f.Cut.Grid.Periodic[a] {
			return q, false
		}
		q[a] = (p[a] + n) % n
	}
	return q, across <= int(f.Spec.Connectivity)+1
}

// value fills bytes with what an owned point holds in one round: numbers that
// repeat nowhere in the fields of a case, except in elements of a few bytes (SplitMix64
// of the point's place), and are never poison.
func value(bytes []byte, b *block, g domain.Grid, p domain.Vec) {
	place := uint64(p[0]) + uint64(g.Size[0])*(uint64(p[1])+uint64(g.Size[1])*uint64(p[2]))
	all := bytes
	seed := place<<16 | uint64(b.round&0xf)<<12 | uint64(b.field&0x3f)<<6 | uint64(b.component&0x3f)
	var word [8]byte
	for len(bytes) > 0 {
		seed += 0x9e3779b97f4a7c15
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(word[:], z^z>>31)
		bytes = bytes[copy(bytes, word[:]):]
	}
	if all[0] == poison {
		all[0]++
	}
}
