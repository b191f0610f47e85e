package packing_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/typetest"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// engineBench is a device with packers of different options.
type engineBench struct {
	*treeBench
	packers []*packing.Packer
}

func newEngineBench(t *testing.T, set *testdevices.Set, all ...packing.Options) *engineBench {
	t.Helper()
	b := &engineBench{treeBench: newTreeBench(t, set)}
	for _, o := range all {
		p := must(packing.New(set.Compiler, b.device, o))(t)
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		b.packers = append(b.packers, p)
	}
	return b
}

// sent is what is packed, at margins of its own, and what the definition makes of it.
type sent struct {
	message                *packing.MessageLayout
	user, packed, unpacked []byte
	origin                 int64
}

const poison = 0xa5

func newSent(t testing.TB, typ *datatype.Type, count int, odd int64) *sent {
	t.Helper()
	s := &sent{message: must(packing.NewMessageLayout(typ, count))(t)}
	l := s.message.Layout
	s.origin = margin + odd - l.TrueLB()
	s.user = typetest.Numbered(l.TrueUB() - l.TrueLB() + odd + 2*margin)
	s.packed = slices.Repeat([]byte{poison}, int(l.Size()+2*margin))
	s.unpacked = slices.Repeat([]byte{poison}, len(s.user))
	for _, err := range []error{
		datatype.Pack(s.packed[margin:], s.user, s.origin, typ, count),
		datatype.Unpack(s.unpacked, s.origin, s.packed[margin:], typ, count),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// check packs and unpacks by an engine and compares all bytes. It reports whether the
// engine can.
func (b *engineBench) check(t testing.TB, p *packing.Packer, e packing.Engine, s *sent) bool {
	t.Helper()
	user, packed := b.memory(t, s.user), b.memory(t, slices.Repeat([]byte{poison}, len(s.packed)))
	defer user.Close()
	defer packed.Close()
	buffer := packed.Span(margin, s.message.Layout.Size())
	pack, err := p.Pack(e, buffer, packing.Place{Data: user.All(), Origin: s.origin}, s.message)
	if errors.Is(err, packing.ErrUnsuited) {
		return false
	}
	if err != nil {
		t.Fatalf("%v: %v", s.message.Type, err)
	}
	defer pack.Close()
	b.do(t, pack.Queue(b.stream), pack.Queue(b.stream))
	b.equal(t, e, s, "packed", b.read(t, packed), s.packed)
	if s.message.Layout.Overlaps() {
		return true
	}
	target := b.memory(t, slices.Repeat([]byte{poison}, len(s.user)))
	defer target.Close()
	unpack, err := p.Unpack(e, packing.Place{Data: target.All(), Origin: s.origin}, buffer, s.message)
	if err != nil {
		t.Fatalf("%v: %v", s.message.Type, err)
	}
	defer unpack.Close()
	b.do(t, unpack.Queue(b.stream))
	b.equal(t, e, s, "unpacked", b.read(t, target), s.unpacked)
	return true
}

func (b *engineBench) equal(t testing.TB, e packing.Engine, s *sent, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("engine %s, %d of %v: byte %d of what was %s is %#x, not %#x", e, s.message.Count, s.message.Type, i, what, got[i], want[i])
		}
	}
}

// variants are the options under which every engine is tried.
var variants = []packing.Options{
	{},
	{Blocks: 2, UnitBytes: 2048, Scan: pack.Sequential, Pinned: true, Loop: pack.InnerLoop},
	{Blocks: 1, UnitBytes: 4096, Scan: pack.Parallel, Primitive: true, Loop: pack.OuterLoop},
	{Lanes: 4},
}

// Every engine does with random types what the type map says, and touches no other byte.
func TestEnginesAgreeWithTheTypeMap(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := newEngineBench(t, set, variants...)
		suited := map[packing.Engine]int{}
		cases := uint64(1200)
		if testing.Short() {
			cases = 300
		}
		for _, seed := range testdevices.Again(100, testdevices.Some(400, testdevices.Numbers(int(cases)))) {
			random := typetest.Seeded(uint64(seed))
			typ := random.Type(t, 4)
			s := newSent(t, typ, random(1, 4), int64([]int{0, 1, 4, 8}[random(0, 3)]))
			for _, p := range b.packers {
				for _, e := range packing.Engines() {
					if b.check(t, p, e, s) {
						suited[e]++
					}
				}
			}
		}
		for _, e := range packing.Engines() {
			if suited[e] == 0 {
				t.Errorf("engine %s suited no layout", e)
			}
		}
	})
}

// FuzzEngines does the same with types of any seed, and with memory that lies anywhere.
func FuzzEngines(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(seed), uint8(seed%5))
	}
	f.Fuzz(func(t *testing.T, seed uint64, odd, count uint8) {
		b := newEngineBench(t, testdevices.Host(t, 1), variants...)
		s := newSent(t, typetest.Seeded(uint64(seed)).Type(t, 5), int(count%6), int64(odd))
		for _, p := range b.packers {
			for _, e := range packing.Engines() {
				b.check(t, p, e, s)
			}
		}
	})
}

// maxOf returns how many packed bytes a workload of a test may have.
func maxOf(set *testdevices.Set) int64 {
	if set.Devices[0].Backend == streams.Host {
		return 64 << 10
	}
	return 1 << 20
}

// So do all engines, and the one that is chosen, with the layouts of the benchmarks.
func TestEnginesDoTheWorkloads(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		most := maxOf(set) // larger ones have the same shape
		b := newEngineBench(t, set, packing.Options{})
		for _, w := range testdevices.Again(10, testdevices.Some(40, must(workloads.All())(t))) {
			if w.Bytes > most || w.Send.Array > 16*most {
				continue
			}
			t.Run(w.String(), func(t *testing.T) {
				for _, side := range []workloads.Side{w.Send, w.Recv} {
					s := newSent(t, side.Type, side.Count, 0)
					for _, e := range append(packing.Engines(), packing.Auto) {
						b.check(t, b.packers[0], e, s)
					}
				}
			})
		}
	})
}

// Engine targeted packs an indexed_block also if two of its blocks touch.
func TestTargetedDoesIndexedBlocksThatTouch(t *testing.T) {
	pair := must(datatype.Contiguous(2, datatype.Int32))(t)
	gaps := must(datatype.Vector(2, 1, 2, datatype.Int32))(t)
	for name, c := range map[string]struct {
		typ   *datatype.Type
		count int
		suits bool
	}{
		"two that touch":         {must(datatype.IndexedBlock(3, []int{0, 3, 10, 25}, datatype.Int32))(t), 2, true},
		"of pairs, in bytes":     {must(datatype.HIndexedBlock(2, []int64{0, 16, 100, 36}, pair))(t), 3, true},
		"backwards":              {must(datatype.IndexedBlock(2, []int{9, 7, 0, -5}, datatype.Float64))(t), 1, true},
		"of elements with gaps":  {must(datatype.IndexedBlock(3, []int{0, 3, 10, 25}, gaps))(t), 1, false},
		"blocks of many lengths": {must(datatype.Indexed([]int{1, 2, 3, 1}, []int{0, 5, 9, 20}, datatype.Int32))(t), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
				b := newEngineBench(t, set, packing.Options{})
				if got := b.check(t, b.packers[0], packing.Targeted, newSent(t, c.typ, c.count, 0)); got != c.suits {
					t.Errorf("it suits: %v", got)
				}
			})
		})
	}
}
