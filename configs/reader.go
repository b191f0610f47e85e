package configs

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// A reader turns settings into typed values and notes what is wrong with them. A key with a problem gives some zero
// value, and is bad: checks of how keys go together leave it out.
type reader struct {
	file      string
	values    *viper.Viper // of setting
	check     func(src string) (uses func(variable string) bool, err error)
	schemes   []Scheme
	paths     []string
	networks  []string
	stencils  []StencilKind
	unit      func(points int, ends [2]FaceKind) float64 // UnitSpacing
	processes int
	problems  Problems
	bad       map[string]bool
	steady    bool // the solver is one without time
	dims      int  // of the grid; 0 while that is not known
}

func newReader(file string, values *viper.Viper, o Options, found Problems) *reader {
	return &reader{
		file: file, values: values, check: o.CheckExpression, schemes: o.Schemes, paths: o.Paths, networks: o.Networks, stencils: o.Stencils,
		unit: o.UnitSpacing, processes: max(1, o.Processes), problems: found, bad: map[string]bool{},
	}
}

// lookup returns what holds for a key. A null stands for the default, which not every key has.
func (r *reader) lookup(name string) (setting, bool) {
	s, ok := r.values.Get(name).(setting)
	if !ok || s.node.ShortTag() != "!!null" {
		return s, ok
	}
	if s.node.Value == "" && !r.bad[name] {
		r.bad[name] = true
		r.report(s, "has no value: %s", r.allowed(name))
	}
	k, _ := findKey(name)
	if k.Default == "" {
		return setting{}, false
	}
	return defaultSetting(k), true
}

// given returns the setting of a key only where a user set it.
func (r *reader) given(name string) (setting, bool) {
	s, ok := r.values.Get(name).(setting)
	return s, ok && s.given() && s.node.ShortTag() != "!!null"
}

// report notes a problem with a setting without its value.
func (r *reader) report(s setting, reason string, args ...any) {
	r.problems.add(s.from, s.key, "", reason, args...)
}

// refuse notes that a value is not what the key allows, and why if that says more.
func (r *reader) refuse(name string, s setting, why ...string) {
	r.bad[name] = true
	if len(why) == 0 {
		why = []string{"is not allowed: " + r.allowed(name)}
	}
	if !s.given() {
		s.from.source = r.file
	}
	r.problems.add(s.from, s.key, show(s.node), "%s", strings.Join(why, ", "))
}

// missing notes that a key has to be set.
func (r *reader) missing(name string) {
	if !r.bad[name] {
		r.problems.add(origin{source: r.file}, name, "", "is required: %s", r.allowed(name))
	}
	r.bad[name] = true
}

// anyBad reports whether one of the keys has a problem.
func (r *reader) anyBad(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return r.bad[name] })
}

// word reads a key that is one of a few words.
func (r *reader) word(name string, words ...string) string {
	s, ok := r.lookup(name)
	if !ok {
		return ""
	}
	if s.node.Kind != yaml.ScalarNode || !slices.Contains(words, s.node.Value) {
		r.refuse(name, s)
		return ""
	}
	return s.node.Value
}

// flag reads a key that is true or false.
func (r *reader) flag(name string) bool {
	s, ok := r.lookup(name)
	if !ok {
		return false
	}
	value, err := strconv.ParseBool(strings.ToLower(s.text()))
	if err != nil || s.node.ShortTag() != "!!bool" {
		r.refuse(name, s)
		return false
	}
	return value
}

// positive reads a key that is a positive number; 0 where it is not set.
func (r *reader) positive(name string) float64 {
	s, ok := r.lookup(name)
	if !ok {
		return 0
	}
	value, ok := decimal(s.node)
	if !ok || value <= 0 {
		r.refuse(name, s)
		return 0
	}
	return value
}

// whole reads a key that is a whole number from lo to hi; 0 where it is not set.
func (r *reader) whole(name string, lo, hi int) int {
	s, ok := r.lookup(name)
	if !ok {
		return 0
	}
	value, ok := integer(s.node)
	if !ok || value < lo || value > hi {
		r.refuse(name, s)
		return 0
	}
	return value
}

// isAuto reports whether a key is, or by default stays, the word auto.
func (r *reader) isAuto(name string) bool {
	s, ok := r.lookup(name)
	return ok && s.text() == Auto
}

// path reads a key that is a file with one of the endings; "" where there is to be none.
func (r *reader) path(name string, endings ...string) string {
	s, ok := r.lookup(name)
	if !ok {
		return ""
	}
	ending := strings.ToLower(filepath.Ext(s.text()))
	if s.node.ShortTag() != "!!str" || s.text() != "" && !slices.Contains(endings, ending) {
		r.refuse(name, s)
		return ""
	}
	return s.text()
}

// text returns the text of a scalar, "" for anything else.
func (s setting) text() string {
	if s.node == nil || s.node.Kind != yaml.ScalarNode {
		return ""
	}
	return s.node.Value
}

// decimal returns a number that is neither infinite nor NaN.
func decimal(n *yaml.Node) (float64, bool) {
	var value float64
	if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || tag != "!!float" && tag != "!!int" || tag == "!!int" && octal.MatchString(n.Value) || n.Decode(&value) != nil {
		return 0, false
	}
	return value, !math.IsNaN(value) && !math.IsInf(value, 0)
}

// octal is a whole number that YAML 1.1 reads to the base 8.
var octal = regexp.MustCompile(`^[-+]?0[0-9_]`)

// integer returns a whole number that fits an int. One with a leading zero is none: some read it to the base 8, others to the base 10.
func integer(n *yaml.Node) (int, bool) {
	var value int
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || octal.MatchString(n.Value) || n.Decode(&value) != nil {
		return 0, false
	}
	return value, true
}

// each reads the items of a list; false when it is none or an item is not of the type.
func each[T any](n *yaml.Node, item func(*yaml.Node) (T, bool)) ([]T, bool) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return nil, false
	}
	values := make([]T, len(n.Content))
	for at, c := range n.Content {
		value, ok := item(c)
		if !ok {
			return nil, false
		}
		values[at] = value
	}
	return values, true
}

// number writes a float64 so that it reads back as the same.
func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

// counted gives "1 device", "2 devices".
func counted(n int, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
