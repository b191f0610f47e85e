package configs

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// A FaceKind is what holds at a physical face of the grid.
type FaceKind string

const (
	Dirichlet FaceKind = "dirichlet" // the field has a given value at the wall
	Neumann   FaceKind = "neumann"   // the field does not change across the wall
	Periodic  FaceKind = "periodic"  // there is no wall: the opposite face is next
)

// A Face is the boundary condition of one face.
type Face struct {
	Kind  FaceKind
	Value string // of Dirichlet: a number or an expression, which may use t if the solver is heat; else ""
}

// form is how a config writes the face.
func (f Face) form() any {
	if f.Kind == Dirichlet {
		return map[string]string{string(Dirichlet): f.Value}
	}
	return string(f.Kind)
}

// MarshalJSON writes the face as a config does.
func (f Face) MarshalJSON() ([]byte, error) { return json.Marshal(f.form()) }

// MarshalYAML writes the face as a config does.
func (f Face) MarshalYAML() (any, error) { return f.form(), nil }

// A Boundary has the condition of every face of the grid, by the name of the face.
type Boundary map[string]Face

// faceName returns the name of a face: "x-", "x+", "y-", ... Axes count from 0; side is 0 for the face at the low end.
func faceName(axis, side int) string { return "xyz"[axis:axis+1] + "-+"[side:side+1] }

// Face returns the condition at the end of an axis, as faceName counts them.
func (b Boundary) Face(axis, side int) Face { return b[faceName(axis, side)] }

// resolveAxes turns the axes that one source sets into faces. Within a source, a face says more than its axis.
func resolveAxes(settings map[string]setting, found *Problems) layer {
	for axis := range 3 {
		key := "boundary." + "xyz"[axis:axis+1]
		whole, ok := settings[key]
		if !ok {
			continue
		}
		delete(settings, key)
		for side := range 2 {
			name := "boundary." + faceName(axis, side)
			face, both := settings[name]
			switch {
			case !both:
				settings[name] = whole
			case isPeriodic(face) != isPeriodic(whole):
				found.add(face.from, name, show(face.node), "contradicts %s, %s: an axis is periodic as a whole", key, show(whole.node))
				settings[name] = whole // one problem is enough
			}
		}
	}
	return settings
}

func isPeriodic(s setting) bool { return s.text() == string(Periodic) }

// boundary reads every face of the grid. Faces that are not set are walls at 0.
func (r *reader) boundary() Boundary {
	b := Boundary{}
	for axis := range 3 {
		if axis == r.dims && r.dims > 0 {
			r.noAxis(axis)
			break
		}
		b[faceName(axis, 0)], b[faceName(axis, 1)] = r.face(axis, 0), r.face(axis, 1)
		r.pair(b, axis)
	}
	return b
}

// noAxis refuses what is set for the faces of an axis that the grid lacks.
func (r *reader) noAxis(axis int) {
	for side := range 2 {
		name := "boundary." + faceName(axis, side)
		if s, ok := r.given(name); ok && !r.told(s) {
			r.refuse(name, s, "is not allowed: the grid has 2 dimensions")
		}
	}
}

// told reports whether a setting has a problem already: an axis stands for two faces, but has the problem once.
func (r *reader) told(s setting) bool {
	for _, p := range r.problems {
		if p.Source == s.from.source && p.Line == s.from.line && p.Key == s.key {
			return true
		}
	}
	return false
}

func (r *reader) face(axis, side int) Face {
	name := "boundary." + faceName(axis, side)
	s, ok := r.lookup(name)
	if !ok {
		return Face{Dirichlet, "0"}
	}
	switch text := s.text(); {
	case text == string(Neumann) || text == string(Periodic):
		return Face{Kind: FaceKind(text)}
	case s.node.Kind == yaml.MappingNode && len(s.node.Content) == 2 && s.node.Content[0].Value == string(Dirichlet):
		return r.wall(name, s)
	}
	r.refuseOnce(name, s)
	return Face{}
}

// wall reads {dirichlet: value}.
func (r *reader) wall(name string, s setting) Face {
	var forbidden [][2]string
	if r.steady {
		forbidden = append(forbidden, [2]string{"t", "solver laplace has no time"})
	}
	text, why := r.expression(s.node.Content[1], forbidden...)
	if why != "" {
		r.refuseOnce(name, s, why)
	}
	return Face{Dirichlet, text}
}

func (r *reader) refuseOnce(name string, s setting, why ...string) {
	r.bad[name] = true
	if !r.told(s) {
		r.refuse(name, s, why...)
	}
}

// pair checks that an axis is periodic at both ends or at none.
func (r *reader) pair(b Boundary, axis int) {
	for side := range 2 {
		name, other := "boundary."+faceName(axis, side), "boundary."+faceName(axis, 1-side)
		if b.Face(axis, side).Kind != Periodic || b.Face(axis, 1-side).Kind == Periodic || r.anyBad(name, other) {
			continue
		}
		s, _ := r.lookup(name)
		r.refuse(name, s, "is not allowed unless "+other+" is periodic too")
	}
}
