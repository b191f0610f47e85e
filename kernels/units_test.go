package kernels_test

import (
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// unitWay is one way of the engine.
type unitWay struct {
	name    string
	options kernels.UnitOptions
}

// unitWays are all ways of the engine of work units.
func unitWays() []unitWay {
	return []unitWay{
		{"default", kernels.UnitOptions{}},
		{"1 KiB", kernels.UnitOptions{Unit: 1024}},
		{"2 KiB", kernels.UnitOptions{Unit: 2048}},
		{"4 KiB", kernels.UnitOptions{Unit: 4096}},
		{"parts of 7", kernels.UnitOptions{Part: 7}},
		{"a unit a part", kernels.UnitOptions{Unit: 4096, Part: 1}},
		{"one thread block", kernels.UnitOptions{MaxBlocks: 1, Part: 100}},
	}
}

func newUnitTable(b *bench, list []kernels.Block, o kernels.UnitOptions) listTable {
	b.t.Helper()
	packer := must(b.compiler.NewUnitPacker(b.device))(b.t)
	table := must(packer.Table(list, o))(b.t)
	b.t.Cleanup(func() {
		table.Close()
		packer.Close()
	})
	return unitTable{table}
}

func TestUnits(t *testing.T) {
	eachList(t, func(b *bench, l blockList) {
		for i, w := range unitWays() {
			if testdevices.OnCPU(b.device) && (i+len(l.blocks))%5 != 0 {
				continue
			}
			b.t.Run(w.name, func(t *testing.T) {
				on := *b
				on.t = t
				checkList(&on, l, newUnitTable(&on, l.blocks, w.options), offsetsFor(i)...)
			})
		}
	})
}

func TestUnitsToPinnedAndPeer(t *testing.T) {
	checkZeroCopy(t, func(b *bench, list []kernels.Block) listTable {
		return newUnitTable(b, list, kernels.UnitOptions{})
	})
}

func TestUnitsAllocateNothing(t *testing.T) {
	checkAllocations(t, func(b *bench, list []kernels.Block) listTable {
		return newUnitTable(b, list, kernels.UnitOptions{})
	})
}

// While one copy cuts the list on one stream, others of the same table wait for it on
// theirs.
func TestUnitsOnSeveralStreams(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	l := scattered("", rng, lengthsOf(5000, func(int) int64 { return 1 + rng.Int64N(500) }), 9, 1)
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newBench(t, s)
		table := newUnitTable(b, l.blocks, kernels.UnitOptions{Part: 50})
		strided, packed := random(l.bytes), make([]byte, l.size())
		memory := b.bytesAt(strided)
		copyList(l, packed, strided, false)
		const many = 4
		var buffers []*streams.Memory
		errs := make(chan error, many)
		for range many {
			buffer := b.bytesAt(random(l.size()))
			buffers = append(buffers, buffer)
			stream := must(b.device.NewStream(streams.Normal))(t)
			pack := must(table.pack(buffer.All(), memory.All(), l.origin))(t)
			go func() {
				err := pack(stream)
				if err == nil {
					err = stream.Sync(limit)
				}
				errs <- err
			}()
		}
		for range many {
			b.do(<-errs)
		}
		for _, buffer := range buffers {
			b.same("packed", [2]int64{}, b.bytesOf(buffer), packed)
		}
	})
}

func TestUnitRefusals(t *testing.T) {
	set := testdevices.Host(t, 2)
	b := newBench(t, set)
	packer := must(b.compiler.NewUnitPacker(b.device))(t)
	checkListRefusals(t, b, func(list []kernels.Block) (listTable, error) {
		table, err := packer.Table(list, kernels.UnitOptions{})
		return unitTable{table}, err
	})
	list := []kernels.Block{{Length: 8}}
	for name, o := range map[string]kernels.UnitOptions{
		"units of 3 KiB":   {Unit: 3072},
		"huge parts":       {Part: 5000},
		"-1 units a part":  {Part: -1},
		"-1 thread blocks": {MaxBlocks: -1},
	} {
		if _, err := packer.Table(list, o); err == nil {
			t.Errorf("%s were accepted", name)
		}
	}
	table := must(packer.Table(list, kernels.UnitOptions{}))(t)
	memory := must(b.device.Alloc(16))(t)
	pack := must(table.Pack(memory.Span(0, 8), memory.Span(8, 8), 0))(t)
	other := must(set.Devices[1].NewStream(streams.Normal))(t)
	if err := pack.Queue(other); err == nil {
		t.Error("a stream of another device was accepted")
	}
}
