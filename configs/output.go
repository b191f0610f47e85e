package configs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Output names the files that a run leaves. An empty name leaves none.
type Output struct {
	Picture string `json:"picture,omitempty" yaml:"picture,omitempty"` // .png, .svg or .pdf
	Slice   string `json:"slice" yaml:"slice"`                         // the plane of a 3-D picture: "auto" or "z=16"
	Field   string `json:"field,omitempty" yaml:"field,omitempty"`     // .npy
	Record  string `json:"record,omitempty" yaml:"record,omitempty"`   // .json
	History bool   `json:"history" yaml:"history"`                     // keep the norms of every check in the record
}

// Plane returns the axis across the plane that a picture shows, and the plane's 0-based index on it: what output.slice
// says, or the middle plane of z. A grid of two dimensions is plane 0 of axis 2.
func (r *Run) Plane() (axis, index int) {
	if r.Dims() == 2 {
		return 2, 0
	}
	if axis, index, ok := parsePlane(r.Output.Slice); ok {
		return axis, index
	}
	return 2, r.Grid.Size[2] / 2
}

var planeForm = regexp.MustCompile(`^([xyz])=([0-9]+)$`)

// parsePlane reads "z=16".
func parsePlane(text string) (axis, index int, ok bool) {
	m := planeForm.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false
	}
	index, err := strconv.Atoi(m[2])
	return strings.Index("xyz", m[1]), index, err == nil
}

// maxHistory is how many checks a history may have: each takes about a hundred bytes, in memory and in the record.
const maxHistory = 1 << 22

func (r *reader) output(size []int, stop Stop) Output {
	return Output{
		Picture: r.path("output.picture", ".png", ".svg", ".pdf"),
		Slice:   r.plane(size),
		Field:   r.path("output.field", ".npy"),
		Record:  r.path("output.record", ".json"),
		History: r.history(stop),
	}
}

func (r *reader) history(stop Stop) bool {
	const name = "output.history"
	wanted := r.flag(name)
	if !wanted || r.anyBad(name, "stop.iterations", "stop.check_every") {
		return wanted
	}
	if checks := stop.Iterations / stop.CheckEvery; checks > maxHistory {
		s, _ := r.lookup(name)
		r.refuse(name, s, fmt.Sprintf("would keep the norms of %d checks: at most %d are possible, so raise stop.check_every", checks, maxHistory))
	}
	return wanted
}

func (r *reader) plane(size []int) string {
	const name = "output.slice"
	if r.isAuto(name) {
		return Auto
	}
	s, _ := r.lookup(name)
	axis, index, ok := parsePlane(s.text())
	switch {
	case !ok:
		r.refuse(name, s)
	case r.dims == 2:
		r.refuse(name, s, "is not allowed: a grid of 2 dimensions is shown whole")
	case r.dims == 3 && index >= size[axis]:
		r.refuse(name, s, fmt.Sprintf("is outside the grid: %s is 0 to %d", "xyz"[axis:axis+1], size[axis]-1))
	}
	return s.text()
}
