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
	"github.com/halox/halox/kernels/flags"
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
	access  string   // accesses.cuh, likewise
	stages  string   // stages.cuh, likewise
	own     string   // a caller's source
	mirrors []mirror // structs and constants that it shares with Go
}

// String names the file and the variant.
func (p Program) String() string {
	if p.stencil+p.access+p.stages == "" {
		return fmt.Sprintf("%s%v", p.File, p.Defines)
	}
	sum := sha256.Sum256([]byte(p.stencil + p.access + p.stages))
	return fmt.Sprintf("%s%v", p.File, append(slices.Clone(p.Defines), fmt.Sprintf("%x", sum[:4])))
}

// key tells programs apart.
func (p Program) key() string {
	return fmt.Sprintf("%s %q %s%s%s%s", p.File, p.Defines, p.stencil, p.access, p.stages, p.own)
}

// source returns what is compiled: the file, and all headers that it and they include.
func (p Program) source() (nvrtc.Source, error) {
	main := nvrtc.Source{Name: p.File, Text: p.own}
	if p.own == "" {
		text, err := sources.ReadFile("cu/" + p.File)
		if err != nil {
			return main, err
		}
		main.Text = string(text) + p.layoutSource()
	}
	return main, p.addHeaders(&main, main.Text)
}

// included finds the headers of cu/ that a text includes; those of the CPU have other names.
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
		header := nvrtc.Header{Name: name[1], Text: p.generated(name[1])}
		if header.Text == "" {
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

// generated returns the text of a header that was made for the program, "" of others.
func (p Program) generated(header string) string {
	return map[string]string{stencilHeader: p.stencil, accessesHeader: p.access, stagesHeader: p.stages}[header]
}

// callersHeader is what a caller's source includes, whether it says so or not; the others are
// what stencilSource and kernels/sweep write.
const (
	callersHeader  = "halox.cuh"
	stencilHeader  = "stencil.cuh"
	accessesHeader = "accesses.cuh"
	stagesHeader   = "stages.cuh"
)

// realNames are the C names of the types.
var realNames = map[Real]string{Float32: "float", Float64: "double"}

// normSum is what all programs share that take norms.
var normSum = mirror{"NormSum", Norms{}}

// tilesPrograms are many steps with a star that reaches one point, of a field in shared memory
// and registers, by threads as a tiling has them: the first without norms, the other with them.
// They are two programs because they are compiled at the same time.
func tilesPrograms(s stencil.Stencil, r Real, b *tiling) [2]Program {
	plain := Program{
		File: "tiles.cu",
		Defines: []string{
			"REAL=" + realNames[r], fmt.Sprintf("WIDTH=%d", b.block[0]), fmt.Sprintf("HEIGHT=%d", b.block[1]*b.rows()),
			fmt.Sprintf("LAYERS=%d", b.block[2]), fmt.Sprintf("REG_LAYERS=%d", b.regLayers),
		},
		stencil: stencilSource(s, r),
		mirrors: []mirror{
			normSum, {"Tiles", tileArgs{}}, {"NOBODY", nobody}, {"THIS_DEVICE", flags.Itself}, {"sizeof(FaceItem)", itemBytes},
			{"THREADS", int(b.threads())}, {"ROWS", int(b.rows())}, {"PLANE", int(b.plane())}, {"sizeof(Packet)", 2 * r.Size()},
		},
	}
	measured := plain
	measured.Defines = append(slices.Clone(plain.Defines), "WITH_NORMS")
	return [2]Program{plain, measured}
}

func directExchangeProgram() Program {
	return Program{File: "exchange.cu", mirrors: []mirror{{"DirectExchange", directExchangeArgs{}}, {"Store", store{}}}}
}

func moveProgram() Program {
	return Program{File: "move.cu", mirrors: []mirror{
		{"Move", moveArgs{}}, {"BlockRange", blockRange{}}, {"MAX_DIMS", MaxDims}, {"STRETCH", stretch},
		{"FLOAT32", slices.Index(scalars, "float32")}, {"FLOAT64", slices.Index(scalars, "float64")},
		{"INT32", slices.Index(scalars, "int32")}, {"INT64", slices.Index(scalars, "int64")},
	}}
}

func treeProgram() Program {
	return Program{File: "tree.cu", mirrors: []mirror{
		{"Tree", treeArgs{}}, {"Node", treeNode{}}, {"sizeof(Dim)", 8 * dimWords}, {"sizeof(Field)", 8 * fieldWords},
		{"CONTIGUOUS", ContiguousNode}, {"VECTOR", VectorNode}, {"SUBARRAY", SubarrayNode},
		{"INDEXED", IndexedNode}, {"INDEXED_BLOCK", IndexedBlockNode}, {"STRUCT", StructNode},
	}}
}

func unitsProgram() Program {
	return Program{File: "units.cu", mirrors: []mirror{{"Units", unitsArgs{}}, {"Unit", unit{}}, {"sizeof(Short)", int(shortBytes)}, {"WARP", bundled}}}
}

func blocksProgram() Program {
	return Program{File: "blocks.cu", mirrors: []mirror{
		{"Blocks", blocksArgs{}}, {"Chunk", chunk{}}, {"Entry", Block{}}, {"THREADS", blockSize}, {"MAX_BLOCKS", maxChunkBlocks},
	}}
}

func normsProgram(r Real) Program {
	return Program{File: "norms.cu", Defines: []string{"REAL=" + realNames[r]}, mirrors: []mirror{normSum, {"Norms", normsArgs{}}}}
}

// reduceProgram is that of a scalar, by its place. Whole numbers have whole
// totals.
func reduceProgram(scalar int) Program {
	total := "double"
	if name := scalarNames[scalar]; name == "int" || name == "i64" {
		total = "i64"
	}
	return Program{
		File: "reduce.cu", Defines: []string{"NUMBER=" + scalarNames[scalar], "TOTAL=" + total},
		mirrors: []mirror{{"Reduce", reductionArgs{}}, {"sizeof(NUMBER)", scalarSizes[scalar]}, {"sizeof(TOTAL)", totalBytes}},
	}
}

func reflectProgram(r Real) Program {
	return Program{File: "reflect.cu", Defines: []string{"REAL=" + realNames[r]}, mirrors: []mirror{{"Reflect", reflectArgs{}}}}
}

func latencyProgram() Program {
	return Program{File: "latency.cu", mirrors: []mirror{{"FlagPingPong", flagPingPongArgs{}}, {"Gate", gateArgs{}}}}
}

// newKernel makes a launch of a kernel of this package ready: each waits by itself for
// what is queued before it, see grid_dependency_wait in device.cuh.
func newKernel(d *streams.Device, spec streams.KernelSpec) (*streams.Kernel, error) {
	spec.Early = true
	return d.NewKernel(spec)
}

// newStages makes launches ready that do one thing together, and are closed with open. Those
// without a Go form are left out where Go runs: the others do all there.
func newStages(d *streams.Device, open *streams.Resources, specs []streams.KernelSpec) (launches []*streams.Kernel, err error) {
	for _, spec := range specs {
		if d.GoKernels && spec.Run == nil && spec.RunWith == nil {
			continue
		}
		k, err := newKernel(d, spec)
		if err != nil {
			return nil, err
		}
		open.Add(k)
		launches = append(launches, k)
	}
	return launches, nil
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
		for _, s := range everyStar() {
			for _, b := range everyTiling(s, r) {
				both := tilesPrograms(s, r, &b)
				all = append(all, both[:]...)
			}
		}
	}
	return all
}

// everyTiling returns tilings of all kinds, of those that hold a part in registers the one that
// takes the most.
func everyTiling(s stencil.Stencil, r Real) []tiling {
	most := mostRegLayers(s.Dims, int64(r.Size()))
	if s.Dims == 2 {
		return []tiling{
			{dims: 2, block: [3]int64{1024, 1, 1}}, {dims: 2, block: [3]int64{16, 1, 64}}, {dims: 2, block: [3]int64{512, 1, 1}, regLayers: most},
		}
	}
	return []tiling{
		{dims: 3, block: [3]int64{32, 32, 1}}, {dims: 3, block: [3]int64{16, 8, 8}}, {dims: 3, block: [3]int64{32, 16, 1}, regLayers: most},
	}
}

// everyStar returns the stars that reach one point, with equal spacings and with others.
func everyStar() (all []stencil.Stencil) {
	for _, spacing := range [][]float64{{0.1, 0.1}, {0.1, 0.2}, {0.1, 0.1, 0.1}, {0.1, 0.2, 0.3}} {
		if s, err := stencil.HeatOf(stencil.Kinds(len(spacing))[0], spacing, 1, 1e-3); err == nil {
			all = append(all, s)
		}
	}
	return all
}
