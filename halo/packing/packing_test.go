package packing_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/typetest"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

const limit = 5 * time.Minute

// engineBench is a device with packers of different options.
type engineBench struct {
	device  *streams.Device
	stream  *streams.Stream
	packers []*packing.Packer
}

func newEngineBench(t *testing.T, set *testdevices.Set, all ...packing.Options) *engineBench {
	t.Helper()
	b := &engineBench{device: set.Devices[0]}
	b.stream = test.Must(b.device.NewStream(streams.Normal))(t)
	for _, o := range all {
		p := test.Must(packing.New(set.Compiler, b.device, o))(t)
		t.Cleanup(func() { b.do(t, p.Close()) })
		b.packers = append(b.packers, p)
	}
	return b
}

// memory returns device memory that holds the bytes. The caller closes it.
func (b *engineBench) memory(t testing.TB, values []byte) *streams.Memory {
	t.Helper()
	m := test.Must(b.device.Alloc(int64(len(values))))(t)
	host := test.Must(b.device.AllocPinned(m.Size()))(t)
	defer host.Close()
	copy(host.Bytes(), values)
	b.do(t, b.stream.Copy(m.All(), host.All()))
	return m
}

func (b *engineBench) read(t testing.TB, m *streams.Memory) []byte {
	t.Helper()
	host := test.Must(b.device.AllocPinned(m.Size()))(t)
	defer host.Close()
	b.do(t, b.stream.Copy(host.All(), m.All()))
	return slices.Clone(host.Bytes())
}

// do checks the errors of queued work and waits for it.
func (b *engineBench) do(t testing.TB, errs ...error) {
	t.Helper()
	test.Check(t, errors.Join(append(errs, b.stream.Sync(limit))...))
}

// sent is a packed message, with margins in which nothing may change, and the expected bytes by the type map.
type sent struct {
	message                *packing.MessageLayout
	user, packed, unpacked []byte
	origin, start          int64 // in the user's bytes, and in the packed bytes
}

const (
	poison = 0xa5
	margin = 32
)

// newSent lays out count elements at given offsets from words, in the user's bytes and packed.
func newSent(t testing.TB, typ *datatype.Type, count int, userOff, packedOff int64) *sent {
	t.Helper()
	s := &sent{message: test.Must(packing.NewMessageLayout(typ, count))(t), start: margin + packedOff}
	l := s.message.Layout
	s.origin = margin + userOff - l.TrueLB()
	s.user = typetest.Numbered(l.TrueUB() - l.TrueLB() + userOff + 2*margin)
	s.packed = slices.Repeat([]byte{poison}, int(l.Size()+s.start+margin))
	s.unpacked = slices.Repeat([]byte{poison}, len(s.user))
	err := errors.Join(datatype.Pack(s.packed[s.start:], s.user, s.origin, typ, count),
		datatype.Unpack(s.unpacked, s.origin, s.packed[s.start:], typ, count))
	test.Check(t, err)
	return s
}

// check packs and unpacks by an engine and compares all bytes. It reports whether the engine supports the
// layout.
func (b *engineBench) check(t testing.TB, p *packing.Packer, e packing.Engine, s *sent) bool {
	t.Helper()
	user, packed := b.memory(t, s.user), b.memory(t, slices.Repeat([]byte{poison}, len(s.packed)))
	defer user.Close()
	defer packed.Close()
	buffer := packed.Span(s.start, s.message.Layout.Size())
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
	b.equal(t, e, s, "packed from", b.read(t, user), s.user)
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
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("engine %s, %d of %v: byte %d of the bytes %s is %#x, want %#x", e, s.message.Count, s.message.Type, i, what, got[i], want[i])
		}
	}
}

// variants are the options under which every engine is tested.
var variants = []packing.Options{
	{},
	{Blocks: 2, UnitBytes: 2048, Scan: pack.Sequential, Pinned: true, Loop: pack.InnerLoop},
	{Blocks: 1, UnitBytes: 4096, Scan: pack.Parallel, Primitive: true, Loop: pack.OuterLoop},
	{Lanes: 4},
	{Each: true, Upload: true, Ahead: true, Uncached: true},
}

// Every engine follows the type map for random types, and changes no other bytes.
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
			off := func() int64 { return []int64{0, 1, 4, 8}[random(0, 3)] }
			s := newSent(t, random.Type(t, random(3, 5)), random.Count(5), off(), off())
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

// Trees support every random type, at any address.
func TestTreeOfRandomTypes(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := newEngineBench(t, set, variants...)
		for seed := range uint64(2000) {
			random := typetest.Seeded(seed)
			most := random(0, 1) * 16 // bytes off words
			s := newSent(t, random.Type(t, random(1, 5)), random.Count(4), int64(random(0, most)), int64(random(0, most)))
			if !b.check(t, b.packers[seed%uint64(len(b.packers))], packing.Tree, s) {
				t.Fatalf("seed %d: no tree", seed)
			}
		}
	})
}

// maxOf returns the maximum number of packed bytes of a workload of a test.
func maxOf(set *testdevices.Set) int64 {
	if set.Devices[0].Backend == streams.Host {
		return 64 << 10
	}
	return 1 << 20
}

// All engines, and the chosen one, pack the layouts of the benchmarks.
func TestEnginesDoTheWorkloads(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		most := maxOf(set) // larger ones have the same shape
		b := newEngineBench(t, set, packing.Options{}, packing.Options{Primitive: true})
		for _, w := range testdevices.Again(10, testdevices.Some(40, test.Must(workloads.All())(t))) {
			if w.Bytes > most || w.Send.Array > 16*most {
				continue
			}
			t.Run(w.String(), func(t *testing.T) {
				for _, side := range []workloads.Side{w.Send, w.Recv} {
					s := newSent(t, side.Type, side.Count, 0, 0)
					for _, e := range append(packing.Engines(), packing.Auto) {
						b.check(t, b.packers[0], e, s)
					}
					b.check(t, b.packers[1], packing.Tree, s)
				}
			})
		}
	})
}

// Engine targeted packs an indexed_block also if two of its blocks are adjacent.
func TestTargetedDoesIndexedBlocksThatTouch(t *testing.T) {
	pair := test.Must(datatype.Contiguous(2, datatype.Int32))(t)
	gaps := test.Must(datatype.Vector(2, 1, 2, datatype.Int32))(t)
	for name, c := range map[string]struct {
		typ   *datatype.Type
		count int
		suits bool
	}{
		"two that touch":         {test.Must(datatype.IndexedBlock(3, []int{0, 3, 10, 25}, datatype.Int32))(t), 2, true},
		"of pairs, in bytes":     {test.Must(datatype.HIndexedBlock(2, []int64{0, 16, 100, 36}, pair))(t), 3, true},
		"backwards":              {test.Must(datatype.IndexedBlock(2, []int{9, 7, 0, -5}, datatype.Float64))(t), 1, true},
		"of elements with gaps":  {test.Must(datatype.IndexedBlock(3, []int{0, 3, 10, 25}, gaps))(t), 1, false},
		"blocks of many lengths": {test.Must(datatype.Indexed([]int{1, 2, 3, 1}, []int{0, 5, 9, 20}, datatype.Int32))(t), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
				b := newEngineBench(t, set, packing.Options{})
				if got := b.check(t, b.packers[0], packing.Targeted, newSent(t, c.typ, c.count, 0, 0)); got != c.suits {
					t.Errorf("it suits: %v", got)
				}
			})
		})
	}
}

// Queuing a job again allocates nothing.
func TestJobsAllocateNothing(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := newEngineBench(t, set, packing.Options{})
		message := test.Must(packing.NewMessageLayout(test.Must(datatype.Vector(4, 1, 2, datatype.Float64))(t), 3))(t)
		user, packed := b.memory(t, typetest.Numbered(512)), b.memory(t, typetest.Numbered(512))
		for _, e := range packing.Engines() {
			job := test.Must(b.packers[0].Pack(e, packed.All(), packing.Place{Data: user.All()}, message))(t)
			var err error
			step := func() {
				if err == nil {
					err = job.Queue(b.stream)
				}
				if err == nil {
					err = b.stream.Sync(limit)
				}
			}
			step()
			if n := testing.AllocsPerRun(100, step); n > 0 || err != nil {
				t.Errorf("engine %s: %v allocations each time: %v", e, n, err)
			}
			b.do(t, job.Close())
		}
	})
}
