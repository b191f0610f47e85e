// Package halotest checks exchanges of ghost regions against geometry alone. It gives every point of a field
// a value that encodes its place in the whole grid, poisons the ghosts, exchanges them, and compares every
// point with the value of its place. It shares no code with the planning and execution of exchanges. Programs
// that embed halo may call it from their tests.
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

// limit is the limit of any device operation.
const limit = 5 * time.Minute

// Case is an exchange to check.
type Case struct {
	Placement *halo.Placement   // required: devices of the subdomains
	Links     *p2p.Links        // required: links between them
	Compiler  *kernels.Compiler // required: compiler of the copy kernels
	Path      p2p.Path          // path of all messages; "" means Auto
	Specs     []halo.Spec       // one per field; the fields are exchanged together
	// Rounds is the number of exchanges without host synchronization in between; values below 1 mean 3.
	Rounds int
	// Late reports whether the stream of a subdomain is delayed by some milliseconds at the start of a round.
	// Then an exchange that does not wait for it fails reliably. Default: never.
	Late func(round, rank int) bool
	// Exchange executes one exchange. Default: Exchanger.Exchange.
	Exchange func(x *halo.Exchanger, at []*streams.Stream) error
}

// Run executes the case on its own fields and returns the first wrong point, with its value and the expected
// value in bytes, or any other error. Ghosts outside physical boundaries have equal values for equal places
// in all subdomains, also after the exchange, which may bring those next to a neighbor from there. All other
// ghosts that an exchange does not update must keep their values.
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

// trial is a case in progress.
type trial struct {
	Case
	fields    []*halo.Field
	exchanger *halo.Exchanger
	open      *streams.Resources
	at        []*streams.Stream
	delays    []*delay // by rank; nil if none is late
}

// block is one array of one subdomain, with its values before and after one round.
type block struct {
	field, rank, component, round int
	in, out                       *streams.Memory
}

// run copies the values of every round to the devices, exchanges them and copies them back, all queued at
// once, and then compares.
func (t *trial) run() error {
	for _, d := range t.Placement.Devices {
		if d == nil { // owned by another process
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

// prepare fills host memory with the values of one round. Every ghost is wrong at first; otherwise the
// comparison would prove nothing.
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

// holdUp delays the late subdomains of a round.
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

// arrays returns the number of arrays of the field in a subdomain.
func arrays(f *halo.Field) int {
	if f.Spec.SoA {
		return max(1, f.Spec.Components)
	}
	return 1
}

// eachPoint calls f with every point of a block, including ghosts, and its bytes in the memory.
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

// poison is the value of every byte of ghosts before an exchange.
const poison = 0xA5

// before sets the bytes of a point: an owned point to its value, a ghost outside a physical boundary to
// another value of its place, and all other ghosts to poison.
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

// compare checks every point of a block after its exchange.
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
			"point %v is %x, must be %x as point %v",
			b.round, f.Spec.Name, b.component, b.rank, f.Placement.Devices[b.rank], own, p, got, want, q)
	}, b.out)
}

// moved reports which bytes of a point an exchange moves: all except the gaps of a type, by the definition of
// unpacking.
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
			panic(err) // the field was made with the type
		}
	}
	moves := make([]bool, bytes)
	for i, b := range touched {
		moves[i] = b != 0
	}
	return moves
}

// source returns the owned point that a point of a subdomain is a copy of, and whether the field's exchange
// updates it: not outside physical boundaries, not across edges or corners beyond its connectivity, and not
// beyond the component's width.
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

// value fills bytes with the value of an owned point in one round: numbers that are unique in the fields of a
// case, except for elements of a few bytes (SplitMix64 of the point's place), and are never poison.
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
