package main

import (
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/halox/halox/internal/bench/steps"
)

// addStepFlags adds the flags of the benches that time steps of a solver.
func addStepFlags(f *pflag.FlagSet, o *steps.Options) {
	f.IntSliceVar(&o.Devices, "devices", nil, "numbers of devices (default 1, 2, 4, ... and all)")
	f.IntVar(&o.Dims, "dims", 3, "3 for cubes and the 7-point star, 2 for squares and the 5-point star")
	f.IntSliceVar(&o.Points, "points", nil, "points along each axis (default 64,128,256,512, or with --dims 2 1024,4096,16384)")
	f.StringSliceVar(&o.Precisions, "precisions", []string{"float64", "float32"}, "float64, float32")
	f.StringVar(&o.Cut, "cut", "auto", "how the grid is cut: auto, or in slabs along its last axis, as in the paper")
	f.DurationVar(&o.Budget, "budget", time.Second, "how long one row is measured at most, without what comes before")
}

// largest returns the largest of some numbers, 0 where there are none.
func largest(all []int) int { return slices.Max(append([]int{0}, all...)) }
