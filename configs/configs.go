// Package configs reads, checks and completes the config of a run.
//
// A config is a YAML, JSON or TOML file. Variables HALOX_... of the environment override the file, and settings given
// as key=value override both. The schema has one entry per key: its type, default, limits and meaning. All problems are
// reported at once, each with its place, key, value and what must hold. A Run that is returned is complete and can be
// run.
package configs

import (
	"embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Load reads the config of a run from a file. A name that ends in .toml is TOML, any other YAML (of which JSON is
// part).
//
// An error is a Problems, or says that the file cannot be read.
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

// Parse is Load for data that was read from the file of that name. It never panics.
func Parse(file string, data []byte, o Options) (*Run, error) {
	c := &checker{Options: o, file: file, bad: map[string]bool{}}
	c.run = &Run{Heat: &Heat{}, Boundary: Boundary{}}
	settings := fileLayer(file, data, &c.problems)
	environment, overrides := environLayer(o.Environ, &c.problems, o.Warn), setLayer(o.Set, &c.problems)
	if settings != nil { // else what is missing from it does not matter
		c.values = merge(settings, environment, overrides)
		c.check()
	}
	if len(c.problems) > 0 {
		return nil, c.problems.sorted(file)
	}
	return c.run, nil
}

//go:embed heat2d.yaml heat3d.yaml laplace2d.yaml laplace3d.yaml
var sampleFiles embed.FS

// Samples returns the names of the sample configs, sorted.
func Samples() []string { return []string{"heat2d", "heat3d", "laplace2d", "laplace3d"} }

// Sample returns the text of a sample config with its comments. Another name is an error that lists them.
func Sample(name string) ([]byte, error) {
	if !slices.Contains(Samples(), name) {
		return nil, fmt.Errorf("a sample config must be one of %s, got %q", strings.Join(Samples(), ", "), name)
	}
	return sampleFiles.ReadFile(name + ".yaml")
}
