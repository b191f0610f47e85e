// Package steps measures steps of a solver: every scheme over every path by [SchemesCommand], and on increasing numbers
// of devices by [ScalingCommand].
package steps

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/p2p/mpi"
)

// common are the options of both benchmarks.
type common struct {
	Devices    []int    // numbers of devices; nil for 1, 2, 4 and so on, and all
	Dims       int      // 3 for cubes, 2 for squares
	Points     []int    // points along each axis; nil for the defaults for Dims
	Stencils   []string // of the number of dimensions; nil for its star of radius 1
	Precisions []string
	Cut        string // cutAuto or cutSlabs
	Budget     time.Duration
}

// cutSlabs is the cut along the last axis; cutAuto leaves it to halox.
const (
	cutAuto  = "auto"
	cutSlabs = "slabs"
)

// defaults are the default options of both benchmarks.
func defaults() common {
	return common{Dims: 3, Precisions: option.AllPrecisions(), Cut: cutAuto, Budget: time.Second}
}

func (o *common) flags() []option.Flag {
	return []option.Flag{
		{Name: "device-counts", Value: &o.Devices, Help: "numbers of devices (default 1, 2, 4, ... and all)", From: 1,
			To: 1024},
		{Name: "dims", Value: &o.Dims, Help: "3 for cubes, 2 for squares", From: 2, To: 3},
		{Name: "points", Value: &o.Points, Help: "points along each axis (default 64,128,256,512, or with --dims 2 " +
			"1024,4096,16384)", From: 1, To: option.MaxPoints},
		option.Precisions(&o.Precisions),
		{Name: "cut", Value: &o.Cut, Help: "decomposition: auto, or slabs along the last axis as in the paper",
			Choices: []string{cutAuto, cutSlabs}},
		option.Budget(&o.Budget),
	}
}

// stencils returns flag --stencils.
func (o *common) stencils() option.Flag {
	var names []string
	for _, s := range slices.Concat(option.Stencils(2), option.Stencils(3)) {
		names = append(names, s.Name)
	}
	return option.Flag{Name: "stencils", Value: &o.Stencils, Open: true, Choices: names,
		Help: "stencils: {} (default 7-point, or with --dims 2 5-point)"}
}

// complete sets defaults, and rejects stencils of another number of dimensions.
func (o *common) complete() error {
	if o.Stencils == nil {
		o.Stencils = []string{option.Stencils(o.Dims)[0].Name}
	}
	for _, name := range o.Stencils {
		if !slices.ContainsFunc(option.Stencils(o.Dims), func(s option.Stencil) bool { return s.Name == name }) {
			return fmt.Errorf("--stencils: must be of %d dimensions, those of --dims, got %s", o.Dims, name)
		}
	}
	if o.Points == nil {
		o.Points = map[int][]int{2: {1024, 4096, 16384}, 3: {64, 128, 256, 512}}[o.Dims]
	}
	slices.Sort(o.Devices)
	return nil
}

// Wants returns the devices of a process; all processes together open the largest number of devices.
func (o *common) Wants(p *mpi.Processes) (bench.Wanted, error) {
	return bench.Wanted{Count: bench.Share(p, slices.Max(append(o.Devices, 0)))}, nil
}

// counts returns the numbers of devices that are available.
func (o *common) counts(on *bench.Machine) (all []int) {
	of := on.Counts()
	switch {
	case len(o.Devices) > 0:
		return o.Devices
	case len(of) == 1:
		return doublings(of[0])
	}
	all = doublings(of[0])
	for _, some := range doublings(len(of)) { // the first processes, with all of their devices
		sum := 0
		for _, n := range of[:some] {
			sum += n
		}
		all = append(all, sum)
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// doublings returns 1, 2, 4 and so on, and n last.
func doublings(n int) (all []int) {
	for k := 1; k < n; k *= 2 {
		all = append(all, k)
	}
	return append(all, n)
}

// problems yields the precisions, each with all stencils and numbers of points.
func (o *common) problems() iter.Seq2[stepCase, int] {
	return func(yield func(stepCase, int) bool) {
		for _, precision := range o.Precisions {
			for _, s := range option.Stencils(o.Dims) {
				for _, points := range o.Points {
					if slices.Contains(o.Stencils, s.Name) && !yield(stepCase{precision: precision, stencil: s}, points) {
						return
					}
				}
			}
		}
	}
}

// cube returns the size of a grid with as many points along each axis.
func (o *common) cube(points int) []int { return slices.Repeat([]int{points}, o.Dims) }
