package pack_test

import (
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// unitWay is one way of the engine.
type unitWay struct {
	name    string
	options pack.UnitOptions
}

// unitWays are all ways of the engine of work units.
func unitWays() []unitWay {
	return []unitWay{
		{"default", pack.UnitOptions{}},
		{"1 KiB", pack.UnitOptions{Unit: 1024}},
		{"2 KiB", pack.UnitOptions{Unit: 2048}},
		{"4 KiB", pack.UnitOptions{Unit: 4096}},
		{"parts of 7", pack.UnitOptions{Part: 7}},
		{"a unit a part", pack.UnitOptions{Unit: 4096, Part: 1}},
		{"one thread block", pack.UnitOptions{MaxBlocks: 1, Part: 100}},
	}
}

func newUnitTable(b *kerneltest.Bench, list []pack.Block, o pack.UnitOptions) listTable {
	b.T.Helper()
	packer := kerneltest.Must(pack.NewUnitPacker(b.Compiler, b.Device))(b.T)
	table := kerneltest.Must(packer.Table(list, o))(b.T)
	b.T.Cleanup(func() {
		table.Close()
		packer.Close()
	})
	return unitTable(table)
}

func TestUnits(t *testing.T) {
	eachList(t, func(b *kerneltest.Bench, l blockList) {
		for i, w := range unitWays() {
			every := 2
			if testdevices.OnCPU(b.Device) {
				every = 10
			}
			if !testdevices.Turn(i+len(l.blocks), every, 2) {
				continue
			}
			b.T.Run(w.name, func(t *testing.T) {
				on := *b
				on.T = t
				checkList(&on, l, newUnitTable(&on, l.blocks, w.options), offsetsFor(i)...)
			})
		}
	})
}

func TestUnitsToPinnedAndPeer(t *testing.T) {
	checkZeroCopy(t, func(b *kerneltest.Bench, list []pack.Block) listTable {
		return newUnitTable(b, list, pack.UnitOptions{})
	})
}

func TestUnitsAllocateNothing(t *testing.T) {
	checkAllocations(t, func(b *kerneltest.Bench, list []pack.Block) listTable {
		return newUnitTable(b, list, pack.UnitOptions{})
	})
}

// While one copy cuts the list on one stream, others of the same table wait for it on
// theirs.
func TestUnitsOnSeveralStreams(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	l := scattered("", rng, lengthsOf(5000, func(int) int64 { return 1 + rng.Int64N(500) }), 9, 1)
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		table := newUnitTable(b, l.blocks, pack.UnitOptions{Part: 50})
		strided, packed := random(l.bytes), make([]byte, l.size())
		memory := bytesAt(b, strided)
		copyList(l, packed, strided, false)
		const many = 4
		var buffers []*streams.Memory
		errs := make(chan error, many)
		for range many {
			buffer := bytesAt(b, random(l.size()))
			buffers = append(buffers, buffer)
			stream := kerneltest.Must(b.Device.NewStream(streams.Normal))(t)
			pack := kerneltest.Must(table.pack(buffer.All(), memory.All(), l.origin))(t)
			go func() {
				err := pack(stream)
				if err == nil {
					err = stream.Sync(kerneltest.Limit)
				}
				errs <- err
			}()
		}
		for range many {
			b.Do(<-errs)
		}
		for _, buffer := range buffers {
			same(b, "packed", [2]int64{}, bytesOf(b, buffer), packed)
		}
	})
}

func TestUnitRefusals(t *testing.T) {
	set := testdevices.Host(t, 2)
	b := kerneltest.NewBench(t, set)
	packer := kerneltest.Must(pack.NewUnitPacker(b.Compiler, b.Device))(t)
	checkListRefusals(t, b, func(list []pack.Block) (listTable, error) {
		table, err := packer.Table(list, pack.UnitOptions{})
		return unitTable(table), err
	})
	list := []pack.Block{{Length: 8}}
	for name, o := range map[string]pack.UnitOptions{
		"units of 3 KiB":   {Unit: 3072},
		"huge parts":       {Part: 5000},
		"-1 units a part":  {Part: -1},
		"-1 thread blocks": {MaxBlocks: -1},
	} {
		if _, err := packer.Table(list, o); err == nil {
			t.Errorf("%s were accepted", name)
		}
	}
	table := kerneltest.Must(packer.Table(list, pack.UnitOptions{}))(t)
	memory := kerneltest.Must(b.Device.Alloc(16))(t)
	pack := kerneltest.Must(table.Copy(pack.Passage{Packed: memory.Span(0, 8), Strided: memory.Span(8, 8)}))(t)
	other := kerneltest.Must(set.Devices[1].NewStream(streams.Normal))(t)
	if err := pack.Queue(other); err == nil {
		t.Error("a stream of another device was accepted")
	}
}
