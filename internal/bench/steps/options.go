// Package steps measures steps of a solver: every scheme over every path by [SchemesOptions], and on
// more and more devices by [ScalingOptions].
package steps

import (
	"errors"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/kernels"
)

// Options are what both benchmarks are asked for.
type Options struct {
	Devices    []int // numbers of them; nil for 1, 2, 4 and so on, and all
	Dims       int   // 3 for cubes and the 7-point star, 2 for squares and the 5-point star
	Points     []int // along each axis; nil for those that suit Dims
	Precisions []string
	Cut        string // see Cuts
	Budget     time.Duration
}

// How the grid is cut.
const (
	cutAuto  = "auto"
	cutSlabs = "slabs" // along its last axis
)

// cuts returns how the grid may be cut: by halox, or in slabs along its last axis.
func cuts() []string { return []string{cutAuto, cutSlabs} }

// maxDevices bounds the devices that steps are made on.
const maxDevices = 1024

// check rejects impossible options, and fills in what was left open.
func (o *Options) check() error {
	if o.Points == nil {
		o.Points = map[int][]int{2: {1024, 4096, 16384}, 3: {64, 128, 256, 512}}[o.Dims]
	}
	o.Points, o.Precisions = option.Distinct(o.Points), option.Distinct(o.Precisions)
	o.Devices = slices.Compact(slices.Sorted(slices.Values(o.Devices)))
	return errors.Join(
		option.OneOf("dims", strconv.Itoa(o.Dims), "2", "3"),
		option.OneOf("cut", o.Cut, cuts()...),
		option.EachOf("precisions", o.Precisions, string(kernels.Float64), string(kernels.Float32)),
		option.Points("points", o.Points), option.Numbers("devices", o.Devices, maxDevices),
		option.Time("budget", o.Budget),
	)
}

// counts returns the numbers of devices, where there are so many.
func (o *Options) counts(on *bench.Machine) (all []int) {
	of := on.Counts()
	switch {
	case len(o.Devices) > 0:
		return o.Devices
	case len(of) == 1:
		return doublings(of[0])
	}
	all = doublings(of[0])
	for _, some := range doublings(len(of)) { // the first processes, with all of theirs
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

// problems yields the precisions, each with all numbers of points.
func (o *Options) problems() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, precision := range o.Precisions {
			for _, points := range o.Points {
				if !yield(precision, points) {
					return
				}
			}
		}
	}
}

// cube returns the size of a grid with as many points along each axis.
func (o *Options) cube(points int) []int { return slices.Repeat([]int{points}, o.Dims) }
