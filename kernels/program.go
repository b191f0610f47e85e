package kernels

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"slices"

	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

//go:embed cu/*.cu cu/*.cuh
var sources embed.FS

// Program is a CUDA source of this package, or a caller's own, with the options
// that fix its variant. Two programs with equal fields compile to the same code.
type Program struct {
	File    string   // under cu/, or what the caller calls it
	Headers []string // under cu/, what the file needs beside common.cuh
	Defines []string // NAME=VALUE
	made    string   // source that was generated, which stands before the headers
	own     string   // a caller's source, whole
}

// String names the file and the variant.
func (p Program) String() string {
	if p.made == "" {
		return fmt.Sprintf("%s%v", p.File, p.Defines)
	}
	sum := sha256.Sum256([]byte(p.made))
	return fmt.Sprintf("%s%v", p.File, append(slices.Clone(p.Defines), fmt.Sprintf("%x", sum[:4])))
}

// key tells programs apart.
func (p Program) key() string { return fmt.Sprintf("%s %q %s%s", p.File, p.Defines, p.made, p.own) }

// text returns the source, after what all of them share.
func (p Program) text() (string, error) {
	if p.own != "" {
		return p.own, nil
	}
	common, err := sources.ReadFile("cu/common.cuh")
	if err != nil {
		return "", err
	}
	whole := string(common)
	if p.made != "" {
		whole += "#line 1 \"made for " + p.File + "\"\n" + p.made
	}
	for _, file := range append(slices.Clone(p.Headers), p.File) {
		body, err := sources.ReadFile("cu/" + file)
		if err != nil {
			return "", err
		}
		whole += fmt.Sprintf("#line 1 %q\n", file) + string(body)
	}
	return whole, nil
}

// realNames are the C names of the types.
var realNames = map[Real]string{Float32: "float", Float64: "double"}

// sweepProgram is the sweeps of one stencil, its weights among them.
func sweepProgram(s stencil.Stencil, r Real) Program {
	return Program{
		File: "sweep.cu", Headers: []string{"four.cuh", "window.cuh"}, Defines: []string{"REAL=" + realNames[r], "READ_ONLY"},
		made: tapsSource(s, r) + formOf(s, r).source(),
	}
}

// stepProgram is whole steps with one stencil.
func stepProgram(s stencil.Stencil, r Real) Program {
	return Program{
		File: "step.cu", Headers: []string{"four.cuh", "window.cuh", "flags.cuh"},
		Defines: []string{"REAL=" + realNames[r], fmt.Sprintf("MOST=%d", maxStores(s)), fmt.Sprintf("RESIDENT_THREADS=%d", residentThreads(s))},
		made:    tapsSource(s, r) + formOf(s, r).source(),
	}
}

// tilesPrograms are many steps with a star that reaches one point, of a field in shared memory
// and registers, by threads as a tiling has them: the first without norms, the other with them.
// They are two programs because they are compiled at the same time.
func tilesPrograms(s stencil.Stencil, r Real, b *tiling) [2]Program {
	plain := Program{
		File: "tiles.cu", Headers: []string{"four.cuh", "flags.cuh", "packet.cuh", "tile.cuh", "faces.cuh"},
		Defines: []string{
			"REAL=" + realNames[r], fmt.Sprintf("WIDTH=%d", b.block[0]), fmt.Sprintf("HEIGHT=%d", b.block[1]*b.rows()),
			fmt.Sprintf("LAYERS=%d", b.block[2]), fmt.Sprintf("REST=%d", b.rest),
		},
		made: tapsSource(s, r),
	}
	measured := plain
	measured.Defines = append(slices.Clone(plain.Defines), "WITH_NORMS")
	return [2]Program{plain, measured}
}

func directExchangeProgram() Program { return Program{File: "swap.cu", Headers: []string{"flags.cuh"}} }

func moveProgram() Program { return Program{File: "move.cu", Headers: []string{"piece.cuh"}} }

func treeProgram() Program { return Program{File: "tree.cu"} }

func unitsProgram() Program { return Program{File: "units.cu", Headers: []string{"piece.cuh"}} }

func blocksProgram() Program { return Program{File: "blocks.cu", Headers: []string{"piece.cuh"}} }

func normsProgram(r Real) Program {
	return Program{File: "norms.cu", Headers: []string{"four.cuh"}, Defines: []string{"REAL=" + realNames[r]}}
}

// reduceProgram is that of a scalar, by its place. Whole numbers have whole
// totals.
func reduceProgram(scalar int) Program {
	total := "double"
	if name := scalarNames[scalar]; name == "int" || name == "i64" {
		total = "i64"
	}
	return Program{File: "reduce.cu", Defines: []string{"NUMBER=" + scalarNames[scalar], "TOTAL=" + total}}
}

func reflectProgram(r Real) Program {
	return Program{File: "reflect.cu", Defines: []string{"REAL=" + realNames[r]}}
}

// newKernel makes a launch of a kernel of this package ready: each waits by itself for
// what is queued before it, see after_predecessor in common.cuh.
func newKernel(d *streams.Device, spec streams.KernelSpec) (*streams.Kernel, error) {
	spec.Early = true
	return d.NewKernel(spec)
}

// Programs returns every program that this package may compile, for tests
// that compile them all.
func Programs() []Program {
	all := []Program{moveProgram(), directExchangeProgram(), treeProgram(), blocksProgram(), unitsProgram(), latencyProgram()}
	for scalar := range scalars {
		all = append(all, reduceProgram(scalar))
	}
	for _, r := range []Real{Float32, Float64} {
		all = append(all, normsProgram(r), reflectProgram(r))
		for _, s := range everyStencil() {
			all = append(all, sweepProgram(s, r), stepProgram(s, r))
			if _, ok := s.AsStar(); ok {
				for _, b := range everyTiling(s, r) {
					both := tilesPrograms(s, r, &b)
					all = append(all, both[:]...)
				}
			}
		}
	}
	return all
}

// everyTiling returns tilings of all kinds, of those that hold a part in registers the one that
// takes the most.
func everyTiling(s stencil.Stencil, r Real) []tiling {
	rest := maxRest(s.Dims, int64(r.Size()))
	if s.Dims == 2 {
		return []tiling{
			{dims: 2, block: [3]int64{1024, 1, 1}}, {dims: 2, block: [3]int64{16, 1, 64}}, {dims: 2, block: [3]int64{512, 1, 1}, rest: rest},
		}
	}
	return []tiling{
		{dims: 3, block: [3]int64{32, 32, 1}}, {dims: 3, block: [3]int64{16, 8, 8}}, {dims: 3, block: [3]int64{32, 16, 1}, rest: rest},
	}
}

// everyStencil returns the stencils of all kinds, those of one step along each axis also
// with spacings that are not equal.
func everyStencil() []stencil.Stencil {
	var all []stencil.Stencil
	for _, spacing := range [][]float64{{0.1, 0.1}, {0.1, 0.2}, {0.1, 0.1, 0.1}, {0.1, 0.2, 0.3}} {
		kinds := stencil.Kinds(len(spacing))
		if spacing[0] != spacing[1] {
			kinds = kinds[:1]
		}
		for _, kind := range kinds {
			if s, err := stencil.HeatOf(kind, spacing, 1, 1e-3); err == nil {
				all = append(all, s)
			}
		}
	}
	return all
}
