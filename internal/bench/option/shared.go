package option

import (
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
)

// Flags of several benchmarks.

// Budget returns flag --budget.
func Budget(value *time.Duration) Flag {
	return Flag{Name: "budget", Value: value, Help: "approximate time for each measurement"}
}

// DeviceIDs returns flag --device-ids. which describes the number of devices, and the default.
func DeviceIDs(value *[]int, which string) Flag {
	return Flag{Name: "device-ids", Value: value, Help: which, Repeated: true}
}

// CheckDeviceIDs rejects another number of devices than count, if that is above 0, and negative or repeated IDs.
func CheckDeviceIDs(ids []int, count int, repeated bool) error {
	for i, id := range ids {
		if id < 0 || !repeated && slices.Contains(ids[:i], id) {
			return fmt.Errorf("--device-ids: must be distinct and at least 0, got %s", List(ids))
		}
	}
	if count > 0 && len(ids) != count {
		return fmt.Errorf("--device-ids: must have %d IDs, got %q", count, List(ids))
	}
	return nil
}

// Paths returns flag --paths.
func Paths(value *[]string, choices []string) Flag {
	return Flag{Name: "paths", Value: value, Help: "paths of messages: {}", Choices: choices}
}

// AllPrecisions returns the default of flag --precisions.
func AllPrecisions() []string { return Texts([]domain.Element{domain.Float64, domain.Float32}) }

// Precisions returns flag --precisions.
func Precisions(value *[]string) Flag {
	return Flag{Name: "precisions", Value: value, Help: "precisions: {}", Choices: AllPrecisions()}
}

// Stencil is a kind of stencil, and its name in flags and records: its points and, after another kind with as many, its
// shape.
type Stencil struct {
	Name string
	Kind stencil.Kind
}

// Stencils returns the kinds for a number of dimensions, the default first.
func Stencils(dims int) (all []Stencil) {
	points := map[int]bool{}
	for _, kind := range stencil.Kinds(dims) {
		name := fmt.Sprintf("%d-point", kind.Points)
		if points[kind.Points] {
			name += "-" + string(kind.Shape)
		}
		points[kind.Points] = true
		all = append(all, Stencil{name, kind})
	}
	return all
}

// Sums returns flag --sums.
func Sums(value *[]string, choices []string) Flag {
	return Flag{Name: "sums", Value: value, Help: "how norms are summed: {}", Choices: choices}
}
