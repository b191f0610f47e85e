// Package configs reads, checks and completes the config of a run.
//
// A config is a YAML, JSON or TOML file. Variables HALOX_... of the environment override the file, and settings given as
// key=value override both. Keys lists what may be set, with defaults and with what is allowed. Whatever is wrong is told
// all at once, each problem with its place, key, value and what would be right; a Run that comes back is whole and can
// be run.
package configs

import (
	"fmt"
	"io"
	"os"
)

// Options are what Load takes beside the file. All may be left out but Stencils.
type Options struct {
	// CheckExpression parses the expression and says which variables it uses, or, in one line, what is wrong with it.
	// nil: expressions are taken as they are.
	CheckExpression func(src string) (uses func(variable string) bool, err error)
	// Schemes are those that exchange.scheme may name beside auto, in the order in which they are shown, Paths those
	// that exchange.path may, and Networks those that exchange.network may. nil: names are taken as they are.
	Schemes  []Scheme
	Paths    []string
	Networks []string
	// Stencils are those that the section stencil may select, in the order in which they are shown: of those with as many
	// points the first is meant where no shape is given, and of all of a dimension the first where nothing is.
	Stencils []StencilKind
	// UnitSpacing returns the distance between the points of an axis that is 1 long, by their number and by what holds at
	// its ends: the default of grid.spacing. nil: it has none, and must be set.
	UnitSpacing func(points int, ends [2]FaceKind) float64
	// Processes is how many share the grid, each with as many devices as devices.count says; 0: one.
	Processes int
	// Set holds overrides "key=value", the value in YAML: "grid.size=[64, 64]", "boundary.x-=periodic".
	Set []string
	// Environ holds "NAME=value" as os.Environ does. Only names that begin with HALOX_ matter.
	Environ []string
}

// Load reads the config of a run from a file. A name that ends in .toml is TOML, any other YAML (of which JSON is part).
//
// An error is a Problems, or says that the file cannot be read.
func Load(file string, o Options) (*Run, error) {
	data, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the config: %w", err)
	}
	return Parse(file, data, o)
}

// read returns the content of a file, of one too large a little more than is
// allowed.
func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// Parse is Load for data that was read from the file of that name. It never panics.
func Parse(file string, data []byte, o Options) (*Run, error) {
	var found Problems
	settings, environment, overrides := fileLayer(file, data, &found), environLayer(o.Environ, &found), setLayer(o.Set, &found)
	if settings == nil { // what is missing from it is not worth telling
		return nil, found.sorted(file)
	}
	r := newReader(file, merge(settings, environment, overrides), o, found)
	run := r.run()
	if len(r.problems) > 0 {
		return nil, r.problems.sorted(file)
	}
	return run, nil
}
