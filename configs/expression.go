package configs

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// field reads a key that is an expression; "" where it is not set.
func (r *reader) field(name string) string {
	s, ok := r.lookup(name)
	if !ok {
		return ""
	}
	text, why := r.expression(s.node)
	if why != "" {
		r.refuse(name, s, why)
	}
	return text
}

// expression reads a number or an expression, and says what is wrong with it. Variables that are not allowed here are
// given with the reason.
func (r *reader) expression(n *yaml.Node, forbidden ...[2]string) (text, why string) {
	text, ok := fieldText(n)
	if !ok {
		return "", "is not allowed: " + fieldAllowed + ", in quotes if it holds : or #"
	}
	if r.check == nil {
		return text, ""
	}
	uses, err := r.check(text)
	if err != nil {
		return "", fmt.Sprintf("is not an expression: %v", err)
	}
	if r.dims == 2 {
		forbidden = append(forbidden, [2]string{"z", "the grid has 2 dimensions"}, [2]string{"k", "the grid has 2 dimensions"})
	}
	for _, f := range forbidden {
		if uses(f[0]) {
			return "", fmt.Sprintf("uses %s, which is not allowed: %s", f[0], f[1])
		}
	}
	return text, ""
}

// fieldText returns the text of an expression. Numbers are written anew, since YAML knows spellings of its own.
func fieldText(n *yaml.Node) (string, bool) {
	if value, ok := decimal(n); ok {
		return number(value), true
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return "", false
	}
	return n.Value, true
}
