package main

import (
	_ "embed"
	"flag"
	"fmt"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed reduction.cu
var cuda string

// source is the kernels with what they share with Go.
var source = kernels.Source{Name: "reduction.cu", Text: compare.Sums + cuda, Mirrors: []kernels.Mirror{
	{Name: "Data", Value: data{}}, {Name: "Slices", Value: launchSlices{}}, {Name: "Tree", Value: tree{}},
	{Name: "CELLS", Value: cells}, {Name: "TOTAL", Value: total}, {Name: "CREDIT", Value: credit},
}}

// data is struct Data of reduction.cu.
type data struct {
	Numbers, Cells    uint64
	Count, Iterations int64
}

// launchSlices and tree are the structs of reduction.cu for launches.
type (
	launchSlices struct {
		Numbers, Sums uint64
		Count         int64
		Sign          float64
	}
	tree struct {
		Sums  uint64
		Count int64
	}
)

// Constants of reduction.cu.
const (
	cells  = 32
	total  = cells - 1
	credit = 255
)

// settings are what the flags of this example say.
type settings struct {
	numbers int64 // of each device; 0: one for each thread
	data    string
}

// problem is the numbers on the devices. Number i of device d is number count*d + i of all.
type problem struct {
	settings
	count     int64
	session   *halo.Session
	options   compare.Options
	world     *ranks.World
	queue     *compare.Queue // nil until it is needed
	resources streams.Resources
	numbers   []*streams.Memory // by device
	cells     []*streams.Memory // by device: those of its ranks
	gathered  *streams.Memory   // on the first device: the sum of each rank, and the total
	byMethod  [2]streams.Span   // the sum and the total of the method in use
	sum       *sum              // nil until it is needed
}

// sum is the reference: of the numbers, and of their magnitudes.
type sum struct{ value, size float64 }

func (p *settings) flags(f *flag.FlagSet) {
	f.Int64Var(&p.numbers, "numbers", 1<<20, "numbers of each device; 0 for one a thread, as in the thesis")
	f.StringVar(&p.data, "data", string(compare.Integers), "what numbers: integers, whose sum is exact, or reals")
}

func (p *settings) check(compare.Options) error {
	if p.data != string(compare.Integers) && p.data != string(compare.Reals) {
		return fmt.Errorf("--data %s: want integers or reals", p.data)
	}
	return compare.Within("numbers", p.numbers, 0, 1<<34)
}

// number is that with an index among those of all devices.
func (p *settings) number(i int64) float64 {
	return compare.Data(p.data).Number(compare.Hash(uint64(i), 0), 1000)
}
