package configs

import (
	"slices"
	"strings"
)

// A Key is something that a config may set.
type Key struct {
	Name    string // the path to it, with dots: "grid.size"
	Default string // as it would be written in YAML; "" when there is none
	Allowed string // what it may be, in words
	free    bool   // its value is free text, which need not be quoted where it stands alone
}

// Words that several keys share.
const (
	faceAllowed   = "periodic, neumann, or {dirichlet: a number or an expression}"
	fieldAllowed  = "a number or an expression"
	solverAllowed = "laplace or heat"
)

var keys = []Key{
	{Name: "solver", Allowed: solverAllowed},
	{Name: "grid.size", Allowed: "2 or 3 whole numbers from 1, the points on each axis: [nx, ny] or [nx, ny, nz]"},
	{Name: "grid.spacing", Allowed: "a number from 1e-100 to 1e100, or one an axis"},
	{Name: "stencil.points", Default: "auto", Allowed: "auto or the number of points of a stencil"},
	{Name: "stencil.shape", Default: "auto", Allowed: "auto or the shape of a stencil"},
	{Name: "precision", Default: "float64", Allowed: "float64 or float32"},
	{Name: "boundary.x", Allowed: faceAllowed}, {Name: "boundary.x-", Allowed: faceAllowed}, {Name: "boundary.x+", Allowed: faceAllowed},
	{Name: "boundary.y", Allowed: faceAllowed}, {Name: "boundary.y-", Allowed: faceAllowed}, {Name: "boundary.y+", Allowed: faceAllowed},
	{Name: "boundary.z", Allowed: faceAllowed}, {Name: "boundary.z-", Allowed: faceAllowed}, {Name: "boundary.z+", Allowed: faceAllowed},
	{Name: "initial", Default: "0", Allowed: fieldAllowed, free: true},
	{Name: "exact", Allowed: fieldAllowed, free: true},
	{Name: "heat.dt", Default: "auto", Allowed: "auto or a positive number"},
	{Name: "heat.diffusivity", Default: "1", Allowed: "a positive number"},
	{Name: "heat.force", Default: "false", Allowed: "true or false"},
	{Name: "stop.iterations", Default: "1000", Allowed: "a whole number from 1"},
	{Name: "stop.tolerance", Allowed: "a positive number, or null for none"},
	{Name: "stop.norm", Default: "max", Allowed: "max or l2"},
	{Name: "stop.check_every", Default: "100", Allowed: "a whole number from 1"},
	{Name: "stop.sums", Default: "reproducible", Allowed: "reproducible or fast"},
	{Name: "devices.backend", Default: "auto", Allowed: "auto, cuda or host"},
	{Name: "devices.count", Default: "auto", Allowed: "auto or a whole number from 1 to 1024"},
	{Name: "devices.ids", Allowed: "different whole numbers from 0: [0, 1]"},
	{Name: "decomposition", Default: "auto", Allowed: "auto, or the parts of each axis, whole numbers from 1: [px, py] or [px, py, pz]"},
	{Name: "exchange.scheme", Default: "auto", Allowed: "auto or the name of a scheme"},
	{Name: "exchange.order", Allowed: "the name of an order that the scheme can take"},
	{Name: "exchange.path", Default: "auto", Allowed: "auto or the name of a path"},
	{Name: "exchange.network", Default: "auto", Allowed: "auto or the name of a network"},
	{Name: "exchange.steps", Default: "1", Allowed: "auto or a whole number from 1 to 16"},
	{Name: "output.picture", Allowed: "a file that ends in .png, .svg or .pdf", free: true},
	{Name: "output.slice", Default: "auto", Allowed: "auto or a plane such as z=16", free: true},
	{Name: "output.field", Allowed: "a file that ends in .npy", free: true},
	{Name: "output.record", Allowed: "a file that ends in .json", free: true},
	{Name: "output.history", Default: "false", Allowed: "true or false"},
}

// Keys returns all that a config may set, in the order of the documentation.
func Keys() []Key { return slices.Clone(keys) }

// Variable returns the name of the variable of the environment that sets the key: HALOX_GRID_SIZE for grid.size,
// HALOX_BOUNDARY_X_MINUS for boundary.x-.
func (k Key) Variable() string {
	name := strings.NewReplacer(".", "_", "-", "_MINUS", "+", "_PLUS").Replace(k.Name)
	return variablePrefix + strings.ToUpper(name)
}

func findKey(name string) (Key, bool) {
	at := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if at < 0 {
		return Key{}, false
	}
	return keys[at], true
}

// isSection reports whether keys stand below the path.
func isSection(path string) bool { return len(below(path)) > 0 }

// below returns the full names of what may stand directly under a section, or at the top for "".
func below(section string) []string {
	var names []string
	for _, k := range keys {
		rest, ok := strings.CutPrefix(k.Name, section+".")
		if section == "" {
			rest, ok = k.Name, true
		}
		if !ok {
			continue
		}
		first, _, _ := strings.Cut(rest, ".")
		if name := join(section, first); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// join appends a name to the path of a section.
func join(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}
