package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/forecast"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
)

// measuredSteps returns the steps of the config's stencil and precision in some records, by how they were made.
func measuredSteps(c *configs.Run, all []results.Source) (steps map[string][]forecast.Sample) {
	steps = map[string][]forecast.Sample{}
	alone := map[string][]forecast.Sample{} // by scheme: a device alone sends nothing by any path
	for _, source := range all {
		for _, row := range source.Rows {
			s, ok := stepOf(c, row)
			if !ok {
				continue
			}
			if s.Parts.Product() == 1 {
				alone[row.Text("scheme")] = append(alone[row.Text("scheme")], s)
				continue
			}
			by := strings.TrimSpace(row.Text("scheme")+" "+row.Text("order")) + " by " + row.Text("path")
			steps[by] = append(steps[by], s)
		}
	}
	for by := range steps {
		scheme, _, _ := strings.Cut(by, " ")
		steps[by] = append(slices.Clone(alone[scheme]), steps[by]...)
	}
	return steps
}

// stepOf returns the step that a row has, if it is of the config's stencil and precision, without norms, of a scheme that
// several hosts can run and that the config allows.
func stepOf(c *configs.Run, row results.Row) (s forecast.Sample, ok bool) {
	took, measured := row.Get(results.Step)
	name := row.Text("scheme")
	wanted := c.Exchange.Scheme == string(scheme.Auto) || c.Exchange.Scheme == name
	if !measured || row.Unit(results.Step) != "us" || !wanted || onOneHost(name) || row.Text("norms") != "" ||
		row.Text("precision") != string(c.Precision) || row.Text("stencil") != fmt.Sprintf("%d-point", c.Stencil.Points) {
		return s, false
	}
	if path := c.Exchange.Path; path != "auto" && row.Text("path") != "" && row.Text("path") != string(path) {
		return s, false
	}
	points, known := row.Float("points")
	parts, err := partsOf(row.Text("parts"))
	if err != nil || !known || points < 1 || points > math.MaxInt32 {
		return s, false
	}
	size := make([]int, c.Dims())
	for a := range size {
		size[a] = int(points)
		if row.Text("mode") == "weak" {
			size[a] *= parts[a]
		}
	}
	s.Grid, err = domain.NewGrid(size, [3]bool{})
	s.Parts, s.Step = parts, time.Duration(took.Median*1e3)
	return s, err == nil
}

// maxParts is how many parts along an axis a cut of a record has at most.
const maxParts = 1 << 17

// partsOf reads a cut, such as 1 x 2 x 2.
func partsOf(text string) (parts domain.Vec, err error) {
	parts = domain.Vec{1, 1, 1}
	fields := strings.Split(text, " x ")
	if len(fields) > len(parts) {
		return parts, fmt.Errorf("a cut %q", text)
	}
	for a, f := range fields {
		if parts[a], err = strconv.Atoi(f); err != nil || parts[a] < 1 || parts[a] > maxParts {
			return parts, fmt.Errorf("a cut %q", text)
		}
	}
	return parts, nil
}

// onOneHost reports whether a scheme runs on one host alone: its kernels run on all devices at once, and wait for each other.
func onOneHost(name string) bool {
	return name == string(scheme.Resident) || name == string(scheme.Ranks)
}
