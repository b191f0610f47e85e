package p2p

import (
	"maps"
	"slices"
)

// Register adds a test-only path, and the legs of its routes if it has any. It returns a function that removes the
// path.
func Register(name Path, traits Traits, lay func(r *Route) error) (restore func()) {
	pathsBefore, layoutsBefore := paths, layouts
	paths = append(slices.Clone(paths), knownPath{name, traits})
	if lay != nil {
		layouts = maps.Clone(layouts)
		layouts[name] = lay
	}
	return func() { paths, layouts = pathsBefore, layoutsBefore }
}

// ThroughTwoHosts lays out a route of a path with a second staging hop.
func ThroughTwoHosts(r *Route) error {
	first, err := r.host()
	if err != nil {
		return err
	}
	second, err := r.host()
	r.push, r.pull = []leg{{first, r.src}, {second, first}}, []leg{{r.dst, second}}
	return err
}
