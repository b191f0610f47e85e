package kernels

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"

	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

//go:embed cu/*.cu cu/*.cuh
var sources embed.FS

// Program is a CUDA source of this package, or a caller's own, with the options
// that fix its variant. Two programs with equal fields compile to the same code.
type Program struct {
	File    string   // under cu/, or what the caller calls it
	Defines []string // NAME=VALUE
	stencil string   // stencil.cuh, if the program includes it
	own     string   // a caller's source
}

// String names the file and the variant.
func (p Program) String() string {
	if p.stencil == "" {
		return fmt.Sprintf("%s%v", p.File, p.Defines)
	}
	sum := sha256.Sum256([]byte(p.stencil))
	return fmt.Sprintf("%s%v", p.File, append(slices.Clone(p.Defines), fmt.Sprintf("%x", sum[:4])))
}

// key tells programs apart.
func (p Program) key() string { return fmt.Sprintf("%s %q %s%s", p.File, p.Defines, p.stencil, p.own) }

// source returns what is compiled: the file, and all headers that it and they include.
func (p Program) source() (nvrtc.Source, error) {
	main := nvrtc.Source{Name: p.File, Text: p.own}
	if p.own == "" {
		text, err := sources.ReadFile("cu/" + p.File)
		if err != nil {
			return main, err
		}
		main.Text = string(text)
	}
	return main, p.addHeaders(&main, main.Text)
}

// included finds the headers of cu/ that a text includes. Those of cu/cpu are not for GPUs.
var included = regexp.MustCompile(`(?m)^#include "(\w+\.cuh)"`)

// addHeaders adds the headers that a text includes, each once.
func (p Program) addHeaders(to *nvrtc.Source, text string) error {
	names := included.FindAllStringSubmatch(text, -1)
	if p.own != "" && len(to.Headers) == 0 {
		names = append(names, []string{"", callersHeader})
	}
	for _, name := range names {
		if slices.ContainsFunc(to.Headers, func(h nvrtc.Header) bool { return h.Name == name[1] }) {
			continue
		}
		header := nvrtc.Header{Name: name[1], Text: p.stencil}
		if name[1] != stencilHeader || p.stencil == "" {
			text, err := sources.ReadFile("cu/" + name[1])
			if errors.Is(err, fs.ErrNotExist) && p.own != "" {
				continue // a header of the caller's, which the compiler will not find
			}
			if err != nil {
				return err
			}
			header.Text = string(text)
		}
		to.Headers = append(to.Headers, header)
		if err := p.addHeaders(to, header.Text); err != nil {
			return err
		}
	}
	return nil
}

// callersHeader is what a caller's source includes, whether it says so or not; stencilHeader is
// what stencilSource writes.
const (
	callersHeader = "halox.cuh"
	stencilHeader = "stencil.cuh"
)

// realNames are the C names of the types.
var realNames = map[Real]string{Float32: "float", Float64: "double"}

// sweepProgram is the sweeps of one stencil, its weights among them.
func sweepProgram(s stencil.Stencil, r Real) Program {
	return Program{File: "sweep.cu", Defines: []string{"REAL=" + realNames[r], "READ_ONLY"}, stencil: stencilSource(s, r)}
}

// stepProgram is whole steps with one stencil.
func stepProgram(s stencil.Stencil, r Real) Program {
	return Program{
		File:    "step.cu",
		Defines: []string{"REAL=" + realNames[r], fmt.Sprintf("MOST=%d", maxStores(s)), fmt.Sprintf("RESIDENT_THREADS=%d", residentThreads(s))},
		stencil: stencilSource(s, r),
	}
}

// tilesPrograms are many steps with a star that reaches one point, of a field in shared memory
// and registers, by threads as a tiling has them: the first without norms, the other with them.
// They are two programs because they are compiled at the same time.
func tilesPrograms(s stencil.Stencil, r Real, b *tiling) [2]Program {
	plain := Program{
		File: "tiles.cu",
		Defines: []string{
			"REAL=" + realNames[r], fmt.Sprintf("WIDTH=%d", b.block[0]), fmt.Sprintf("HEIGHT=%d", b.block[1]*b.rows()),
			fmt.Sprintf("LAYERS=%d", b.block[2]), fmt.Sprintf("REST=%d", b.rest),
		},
		stencil: stencilSource(s, r),
	}
	measured := plain
	measured.Defines = append(slices.Clone(plain.Defines), "WITH_NORMS")
	return [2]Program{plain, measured}
}

func directExchangeProgram() Program { return Program{File: "swap.cu"} }

func moveProgram() Program { return Program{File: "move.cu"} }

func treeProgram() Program { return Program{File: "tree.cu"} }

func unitsProgram() Program { return Program{File: "units.cu"} }

func blocksProgram() Program { return Program{File: "blocks.cu"} }

func normsProgram(r Real) Program {
	return Program{File: "norms.cu", Defines: []string{"REAL=" + realNames[r]}}
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
