package kernels_test

import (
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
)

// blockWay is one way of the engine.
type blockWay struct {
	name    string
	options kernels.BlockOptions
}

// blockWays are all ways of the host bypass.
func blockWays() []blockWay {
	return []blockWay{
		{"default", kernels.BlockOptions{}},
		{"in pinned memory", kernels.BlockOptions{Pinned: true}},
		{"sequential scan", kernels.BlockOptions{Scan: kernels.Sequential}},
		{"parallel scan", kernels.BlockOptions{Scan: kernels.Parallel}},
		{"two steps", kernels.BlockOptions{Scan: kernels.TwoSteps}},
		{"two steps, small chunks", kernels.BlockOptions{Scan: kernels.TwoSteps, Chunk: 256, MaxBlocks: 3}},
		{"sums in a plane", kernels.BlockOptions{Sums: kernels.PlaneSums}},
		{"parallel scan in a plane", kernels.BlockOptions{Sums: kernels.PlaneSums, Scan: kernels.Parallel}},
		{"threshold", kernels.BlockOptions{Threshold: 300}},
		{"small chunks", kernels.BlockOptions{Chunk: 128}},
		{"large chunks", kernels.BlockOptions{Chunk: 64 << 10}},
		{"a thread a block", kernels.BlockOptions{Lanes: 1}},
		{"a warp a block", kernels.BlockOptions{Lanes: 32}},
		{"all on a block", kernels.BlockOptions{Lanes: 256, Chunk: 1152}},
		{"one thread block", kernels.BlockOptions{MaxBlocks: 1}},
		{"two thread blocks", kernels.BlockOptions{MaxBlocks: 2, Pinned: true}},
	}
}

func newBlockTable(b *bench, list []kernels.Block, o kernels.BlockOptions) listTable {
	b.t.Helper()
	packer := must(b.compiler.NewBlockPacker(b.device))(b.t)
	table := must(packer.Table(list, o))(b.t)
	b.t.Cleanup(func() { table.Close() })
	return blockTable{table}
}

func TestBlocks(t *testing.T) {
	eachList(t, func(b *bench, l blockList) {
		for i, w := range blockWays() {
			if testdevices.OnCPU(b.device) && (i+len(l.blocks))%6 != 0 {
				continue
			}
			b.t.Run(w.name, func(t *testing.T) {
				on := *b
				on.t = t
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
	checkZeroCopy(t, func(b *bench, list []kernels.Block) listTable {
		return newBlockTable(b, list, kernels.BlockOptions{})
	})
}

func TestBlocksAllocateNothing(t *testing.T) {
	checkAllocations(t, func(b *bench, list []kernels.Block) listTable {
		return newBlockTable(b, list, kernels.BlockOptions{})
	})
}

func TestBlockRefusals(t *testing.T) {
	b := newBench(t, testdevices.Host(t, 1))
	packer := must(b.compiler.NewBlockPacker(b.device))(t)
	checkListRefusals(t, b, func(list []kernels.Block) (listTable, error) {
		table, err := packer.Table(list, kernels.BlockOptions{})
		return blockTable{table}, err
	})
	for name, o := range map[string]kernels.BlockOptions{
		"another scan":         {Scan: "quick"},
		"other sums":           {Sums: "cube"},
		"a plane of two steps": {Sums: kernels.PlaneSums, Scan: kernels.TwoSteps},
		"a negative threshold": {Threshold: -1},
		"odd chunks":           {Chunk: 1000},
		"huge chunks":          {Chunk: 2 << 30},
		"three lanes":          {Lanes: 3},
		"512 lanes":            {Lanes: 512},
		"-1 thread blocks":     {MaxBlocks: -1},
		"equal blocks":         {Equal: true},
	} {
		if _, err := packer.Table([]kernels.Block{{Length: 8}, {Length: 9}}, o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
