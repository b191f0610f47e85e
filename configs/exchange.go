package configs

import (
	"fmt"
	"slices"
	"strings"
)

// Exchange says how subdomains send their boundary regions to each other.
type Exchange struct {
	Scheme  string `json:"scheme" yaml:"scheme"`                   // "auto" or the name of one of Options.Schemes
	Order   string `json:"order,omitempty" yaml:"order,omitempty"` // one of the scheme's orders, of auto one of any scheme's; "" where it has none
	Path    string `json:"path" yaml:"path"`                       // "auto" or one of Options.Paths that the scheme can take
	Network string `json:"network" yaml:"network"`                 // "auto" or one of Options.Networks
	Steps   Count  `json:"steps" yaml:"steps"`                     // between two exchanges; 0: halox tries some
}

// maxGroup is the largest number of steps between two exchanges that a config may ask for.
const maxGroup = 16

// A Scheme is what exchange.scheme may name, with what it needs of the rest of a config.
type Scheme struct {
	Name   string
	Orders []string // that it can take, the one that it takes by itself first; nil where it has none to choose
	Paths  []string // that it can take beside auto; nil for all
	Steady bool     // no value at a face may change with time
	Groups bool     // it can make several steps between two exchanges
}

// exchange reads how subdomains exchange, and asks the scheme whether it goes with the rest.
func (r *reader) exchange(b Boundary) Exchange {
	e := Exchange{
		Scheme:  r.choice("exchange.scheme", r.schemeNames()),
		Order:   r.choice("exchange.order", ordersOf(r.schemes)),
		Path:    r.choice("exchange.path", r.paths),
		Network: r.choice("exchange.network", r.networks),
	}
	if !r.isAuto("exchange.steps") {
		e.Steps = Count(r.whole("exchange.steps", 1, maxGroup))
	}
	if e.Scheme == Auto {
		if orders := ordersOf(r.schemes); e.Order == "" && len(orders) > 0 {
			e.Order = orders[0]
		}
		return e
	}
	at := slices.IndexFunc(r.schemes, func(s Scheme) bool { return s.Name == e.Scheme })
	if at >= 0 {
		r.suits(r.schemes[at], &e, b)
	}
	return e
}

// choice reads a word that is one of those given. Where none are given, any word will do.
func (r *reader) choice(name string, words []string) string {
	s, ok := r.lookup(name)
	if !ok {
		return ""
	}
	if len(words) == 0 && s.text() != "" {
		return s.text()
	}
	if name != "exchange.order" {
		words = append([]string{Auto}, words...)
	}
	return r.word(name, words...)
}

// suits refuses what the scheme cannot take, and completes the order.
func (r *reader) suits(s Scheme, e *Exchange, b Boundary) {
	order, given := r.given("exchange.order")
	switch {
	case !given && len(s.Orders) > 0:
		e.Order = s.Orders[0]
	case given && len(s.Orders) == 0 && !r.bad["exchange.order"]:
		r.refuse("exchange.order", order, fmt.Sprintf("is not allowed: the scheme %s has no order to choose: leave it out%s", s.Name, r.ordered()))
	case given && !slices.Contains(s.Orders, e.Order) && !r.bad["exchange.order"]:
		r.refuse("exchange.order", order, fmt.Sprintf("is not allowed: the scheme %s takes %s", s.Name, either(s.Orders)))
	}
	if path, _ := r.lookup("exchange.path"); e.Path != Auto && e.Path != "" && len(s.Paths) > 0 && !slices.Contains(s.Paths, e.Path) {
		r.refuse("exchange.path", path, fmt.Sprintf("is not allowed: the scheme %s takes %s", s.Name, either(append([]string{Auto}, s.Paths...))))
	}
	if steps, _ := r.lookup("exchange.steps"); e.Steps > 1 && !s.Groups {
		r.refuse("exchange.steps", steps, fmt.Sprintf("is not allowed: the scheme %s exchanges after each step", s.Name))
	}
	if face := r.changing(b); s.Steady && face != "" {
		scheme, _ := r.lookup("exchange.scheme")
		r.refuse("exchange.scheme", scheme, fmt.Sprintf("is not allowed: it makes steps without the host, and the value at boundary.%s changes with time", face))
	}
}

// ordered suggests the schemes that have orders.
func (r *reader) ordered() string {
	var names []string
	for _, s := range r.schemes {
		if len(s.Orders) > 0 {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", or take the scheme " + either(names)
}

// changing returns the first face whose value uses the time, "" where none does or nobody can tell.
func (r *reader) changing(b Boundary) string {
	for axis := range r.dims {
		for side := range 2 {
			f := b.Face(axis, side)
			if f.Kind != Dirichlet || r.check == nil || r.bad["boundary."+faceName(axis, side)] {
				continue
			}
			if uses, err := r.check(f.Value); err == nil && uses("t") {
				return faceName(axis, side)
			}
		}
	}
	return ""
}

// schemeNames returns the names of the schemes.
func (r *reader) schemeNames() (names []string) {
	for _, s := range r.schemes {
		names = append(names, s.Name)
	}
	return names
}

// ordersOf returns the orders of all schemes, each once.
func ordersOf(schemes []Scheme) (orders []string) {
	for _, s := range schemes {
		for _, o := range s.Orders {
			if !slices.Contains(orders, o) {
				orders = append(orders, o)
			}
		}
	}
	return orders
}

// allowed says in words what a key may be.
func (r *reader) allowed(name string) string {
	if name == "stencil.points" {
		return r.allowedPoints()
	}
	words := map[string][]string{
		"exchange.scheme": r.schemeNames(), "exchange.order": ordersOf(r.schemes), "exchange.path": r.paths, "exchange.network": r.networks, "stencil.shape": r.shapes(),
	}[name]
	if len(words) == 0 {
		k, _ := findKey(name)
		return k.Allowed
	}
	if name != "exchange.order" {
		words = append([]string{Auto}, words...)
	}
	return either(words)
}

// either joins words as "a, b or c".
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
