// Package configs reads, checks and completes the config of a run.
//
// A config is a YAML, JSON or TOML file. Environment variables HALOX_... override the file, and settings given as
// key=value override both. The schema has one entry per key: its type, default, limits and meaning. All problems are
// reported at once, each with its location, key, value and requirement. A returned Run is complete and can be run.
package configs

import (
	"embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Load reads the config of a run from a file. A file whose name ends in .toml is parsed as TOML, any other file as YAML
// (which includes JSON).
//
// An error is either a Problems value, or says that the file cannot be read.
func Load(file string, o Options) (*Run, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the config: %w", err)
	}
	return Parse(file, data, o)
}

// Parse is like Load, for data that was read from the named file. It never panics.
func Parse(file string, data []byte, o Options) (*Run, error) {
	c := &checker{Options: o, file: file, bad: map[string]bool{}, parts: map[string]setting{}}
	c.run = &Run{
		Heat: &Heat{}, Laplace: &Laplace{}, Time: &Time{}, Boundary: Boundary{}, Checkpoint: &Checkpoint{},
	}
	settings := fileLayer(file, data, &c.problems)
	environment, overrides := environLayer(o.Environ, &c.problems, o.Warn), setLayer(o.Set, &c.problems)
	if settings != nil { // otherwise missing keys are not reported
		c.values, c.entered = merge(settings, environment, overrides)
		c.check()
	}
	if len(c.problems) > 0 {
		return nil, c.problems.sorted(file)
	}
	return c.run, nil
}

// check runs all checks. Sections that depend on others are checked after them.
func (c *checker) check() {
	c.decode()
	for _, name := range []string{"solver", "grid.size"} {
		if _, ok := c.lookup(name); !ok {
			c.missing(name)
		}
	}
	c.solver()
	c.boundary()
	if c.run.Solver == SolverEquation {
		c.equation()
	} else {
		c.run.Time = nil
		c.spacing()
		kind := c.stencil()
		c.expressions()
		c.robin()
		c.heat(kind)
	}
	c.measure()
	c.checkpoint()
	c.faults()
	c.devices()
	c.decomposition()
	c.exchange()
	c.output()
}

//go:embed grayscott.yaml heat2d.yaml heat3d.yaml laplace2d.yaml laplace3d.yaml wave.yaml
var sampleFiles embed.FS

// Samples returns the names of the sample configs, sorted.
func Samples() []string {
	return []string{"grayscott", "heat2d", "heat3d", "laplace2d", "laplace3d", "wave"}
}

// Sample returns the text of a sample config with its comments. For an unknown name it returns an error that lists the
// valid names.
func Sample(name string) ([]byte, error) {
	if !slices.Contains(Samples(), name) {
		return nil, fmt.Errorf("a sample config must be one of %s, got %q", strings.Join(Samples(), ", "), name)
	}
	return sampleFiles.ReadFile(name + ".yaml")
}
