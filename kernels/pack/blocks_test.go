package pack_test

import (
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
)

// blockWay is one way of the engine.
type blockWay struct {
	name    string
	options pack.BlockOptions
}

// blockWays are all ways of the host bypass.
func blockWays() []blockWay {
	return []blockWay{
		{"default", pack.BlockOptions{}},
		{"in pinned memory", pack.BlockOptions{Pinned: true}},
		{"sequential scan", pack.BlockOptions{Scan: pack.Sequential}},
		{"parallel scan", pack.BlockOptions{Scan: pack.Parallel}},
		{"parallel scan, small chunks", pack.BlockOptions{Scan: pack.Parallel, Chunk: 256, MaxBlocks: 3}},
		{"small chunks", pack.BlockOptions{Chunk: 128}},
		{"large chunks", pack.BlockOptions{Chunk: 64 << 10}},
		{"a thread a block", pack.BlockOptions{Lanes: 1}},
		{"a warp a block", pack.BlockOptions{Lanes: 32}},
		{"all on a block", pack.BlockOptions{Lanes: 256, Chunk: 1152}},
		{"one thread block", pack.BlockOptions{MaxBlocks: 1}},
		{"two thread blocks", pack.BlockOptions{MaxBlocks: 2, Pinned: true}},
	}
}

func newBlockTable(b *kerneltest.Bench, list []pack.Block, o pack.BlockOptions) listTable {
	b.T.Helper()
	packer := kerneltest.Must(pack.NewBlockPacker(b.Compiler, b.Device))(b.T)
	table := kerneltest.Must(packer.Table(list, o))(b.T)
	b.T.Cleanup(func() { table.Close() })
	return blockTable(table)
}

func TestBlocks(t *testing.T) {
	eachList(t, func(b *kerneltest.Bench, l blockList) {
		for i, w := range blockWays() {
			every := 2
			if testdevices.OnCPU(b.Device) {
				every = 12
			}
			if !testdevices.Turn(i+len(l.blocks), every, 2) {
				continue
			}
			b.T.Run(w.name, func(t *testing.T) {
				on := *b
				on.T = t
				checkList(&on, l, newBlockTable(&on, l.blocks, w.options), offsetsFor(i)...)
				if l.equalBlocks() {
					w.options.Equal = true
					checkList(&on, l, newBlockTable(&on, l.blocks, w.options), offsetsFor(i)...)
				}
			})
		}
	})
}

func TestBlocksToPinnedAndPeer(t *testing.T) {
	checkZeroCopy(t, func(b *kerneltest.Bench, list []pack.Block) listTable {
		return newBlockTable(b, list, pack.BlockOptions{})
	})
}

func TestBlocksAllocateNothing(t *testing.T) {
	checkAllocations(t, func(b *kerneltest.Bench, list []pack.Block) listTable {
		return newBlockTable(b, list, pack.BlockOptions{})
	})
}

func TestBlockRefusals(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	packer := kerneltest.Must(pack.NewBlockPacker(b.Compiler, b.Device))(t)
	checkListRefusals(t, b, func(list []pack.Block) (listTable, error) {
		table, err := packer.Table(list, pack.BlockOptions{})
		return blockTable(table), err
	})
	for name, o := range map[string]pack.BlockOptions{
		"another scan":     {Scan: "quick"},
		"odd chunks":       {Chunk: 1000},
		"huge chunks":      {Chunk: 2 << 30},
		"three lanes":      {Lanes: 3},
		"512 lanes":        {Lanes: 512},
		"-1 thread blocks": {MaxBlocks: -1},
		"equal blocks":     {Equal: true},
	} {
		if _, err := packer.Table([]pack.Block{{Length: 8}, {Length: 9}}, o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
