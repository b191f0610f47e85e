// Package exchange measures halo exchanges of cubes of float64, all six faces, over every path.
package exchange

import (
	"cmp"
	"slices"

	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/p2p"
)

// Options say which exchanges are measured: every combination.
type Options struct {
	Points []int // of a device, along each axis
	Radius []int // layers of ghosts
	Fields []int // exchanged together
	Paths  []string
}

// The limits of options: what is beyond serves no measurement, and takes long to find out that
// there is no memory for it.
const (
	maxFields = 1024
	maxRadius = 1024
)

// Paths returns the paths that can be measured.
func Paths() []string {
	paths := option.Texts(p2p.Paths())
	slices.Reverse(paths)
	return paths
}

// Check refuses options that make no sense. What is named twice is measured once.
func (o *Options) Check() error {
	o.Points, o.Radius = option.Distinct(o.Points), option.Distinct(o.Radius)
	o.Fields, o.Paths = option.Distinct(o.Fields), option.Distinct(o.Paths)
	return cmp.Or(
		option.Points("points", o.Points),
		option.Numbers("radius", o.Radius, maxRadius), option.Numbers("fields", o.Fields, maxFields),
		option.EachOf("paths", o.Paths, Paths()...),
	)
}
