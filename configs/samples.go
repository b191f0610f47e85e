package configs

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed heat2d.yaml heat3d.yaml laplace2d.yaml laplace3d.yaml
var sampleFiles embed.FS

// Samples returns the names of the sample configs, sorted.
func Samples() []string { return []string{"heat2d", "heat3d", "laplace2d", "laplace3d"} }

// Sample returns the text of a sample config, comments and all. Another name is an error that lists them.
func Sample(name string) ([]byte, error) {
	if !slices.Contains(Samples(), name) {
		return nil, fmt.Errorf("there is no sample config %q: %s", name, strings.Join(Samples(), ", "))
	}
	return sampleFiles.ReadFile(name + ".yaml")
}
