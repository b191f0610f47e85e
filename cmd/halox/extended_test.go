package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results"
)

// Steady solutions that the differences have without error stay as they are, under every scheme that takes them and on
// grids of all dimensions: with sources, and diffusivities per axis and in place.
func TestSourcesAndDiffusivities(t *testing.T) {
	for _, c := range []struct{ name, size, exact, keys, boundary string }{
		{"source", "[9, 8]", "x^2 + y^2", "heat: {source: -4}", ""},
		{"one axis", "[9]", "x^2", "heat: {source: -4, diffusivity: 2}", ""},
		{"three axes", "[6, 5, 7]", "x^2 + y^2 + z^2", "heat: {source: -12, diffusivity: [1, 2, 3]}", ""},
		{"per axis alone", "[6, 7]", "2*x^2 - y^2", "heat: {diffusivity: [1, 2]}", ""},
		{"in place", "[9, 8]", "x", "heat: {diffusivity: 1 + x + y, source: -1}", ""},
		{"in place, steps of its own", "[9, 8]", "x", "heat: {diffusivity: 1 + x*x*y, source: -2*x*y, dt: 1e-4}", "tolerance"},
		{"flux", "[9, 8]", "x", "heat: {diffusivity: 1 + x + y, source: -1}",
			"x-: {flux: -(1+y)}, x+: {flux: 2 + y}, y: neumann, "},
		{"flux and robin per axis", "[9, 8]", "x", "heat: {diffusivity: [2, 3], source: 0}",
			"x-: {flux: -2}, x+: {robin: {h: 4, ambient: 1.5}}, y: neumann, "},
		{"source of the field", "[8, 8]", "1", "heat: {source: 1 - u}", ""},
		{"box", "[9, 9]", "x^2 + y^2", "stencil: {points: 9, shape: box}\nheat: {source: -4}", ""},
		{"star of order 4", "[9, 8]", "x - y", "stencil: {points: 9, shape: star}\nheat: {source: 0*x}", ""},
		{"laplace", "[9, 8]", "x^2 + 2*y^2", "laplace: {source: -6}", ""},
		{"laplace, box", "[9, 9, 9]", "x^2 + y^2 + z^2", "stencil: {points: 27}\nlaplace: {source: -6}", ""},
		{"laplace, one axis", "[9]", "x^2", "laplace: {source: -2}", ""},
		{"no flux, all of it", "[8, 8]", "0", "heat: {source: sin(pi*i/4)}", "x: periodic, y: neumann, "},
	} {
		t.Run(c.name, func(t *testing.T) {
			solver := strings.Split(c.keys[strings.LastIndex(c.keys, "\n")+1:], ":")[0]
			walls := c.boundary
			if !strings.Contains(walls, ",") {
				walls = ""
				for a := range strings.Count(c.size, ",") + 1 {
					walls += fmt.Sprintf("%c: {dirichlet: %q}, ", "xyz"[a], c.exact)
				}
			}
			text := fmt.Sprintf("solver: %s\ngrid: {size: %s}\ninitial: %s\nexact: %[3]s\n%s\nboundary: {%s}\n"+
				"stop: {iterations: 30}\ndevices: {backend: host, count: 2}\n", solver, c.size, c.exact, c.keys, walls)
			first, schemes := "", []string{"baseline", "fused"}
			if c.name == "source" || c.name == "in place" || c.name == "laplace" {
				schemes = append(schemes, "two-stream", "assisted", "graph", "resident", "blocked", "ranks")
			}
			for _, scheme := range schemes {
				code, out, errs := cli("run", "--json", write(t, "c.yaml", text), "--set", "exchange.scheme="+scheme)
				if code != 0 {
					if scheme != "blocked" && scheme != "ranks" || !strings.Contains(errs, scheme) {
						t.Errorf("%s: %d %s", scheme, code, errs)
					}
					continue
				}
				_, norms, _ := strings.Cut(out, `"error": `)
				norms, _, _ = strings.Cut(norms, "}")
				if first == "" {
					first = norms
				}
				if norms != first {
					t.Errorf("%s has %s, and others %s", scheme, norms, first)
				}
				var e results.ErrorNorms
				test.Check(t, json.Unmarshal([]byte(norms+"}"), &e))
				largest := *e.Max
				if zero := c.exact == "0"; zero == (largest < 1e-6) || !zero && !(math.Abs(largest) < 1e-12) {
					t.Errorf("%s: error %v\n%s", scheme, largest, errs)
				}
			}
		})
	}
}
