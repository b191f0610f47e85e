package configs

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// An origin is where a setting comes from. The zero value stands for the defaults.
type origin struct {
	source string // as in Problem
	line   int
}

// A setting is a value that somebody gave to a key.
type setting struct {
	key  string // as given, so boundary.x where it stands for boundary.x-
	node *yaml.Node
	from origin
}

// given reports whether a user set it, and not the schema.
func (s setting) given() bool { return s.from.source != "" }

// A layer is all that one source sets, by key. Axes of the boundary are resolved into faces.
type layer map[string]setting

// maxShown is how much of a value a message repeats, in characters.
const maxShown = 60

// show gives a value as a user would recognise it, in one short line.
func show(n *yaml.Node) string {
	text := []rune(render(n, 3))
	if len(text) > maxShown {
		return string(text[:maxShown]) + "..."
	}
	return string(text)
}

// render writes a value in YAML's flow style, down to a depth.
func render(n *yaml.Node, depth int) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return "*" + printable(n.Value)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		return `"` + printable(n.Value) + `"`
	case n.Kind == yaml.ScalarNode:
		return printable(n.Value)
	case depth == 0:
		return "..."
	case n.Kind == yaml.SequenceNode:
		return "[" + renderAll(n.Content, depth-1, 1) + "]"
	}
	return "{" + renderAll(n.Content, depth-1, 2) + "}"
}

// renderAll joins items that are made of step nodes each: 1 in a list, 2 in a mapping.
func renderAll(nodes []*yaml.Node, depth, step int) string {
	var b strings.Builder
	for n := 0; n+step <= len(nodes) && b.Len() <= 4*maxShown; n += step {
		if n > 0 {
			b.WriteString(", ")
		}
		if step == 2 {
			b.WriteString(printable(nodes[n].Value) + ": ")
		}
		b.WriteString(render(nodes[n+step-1], depth))
	}
	return b.String()
}

// printable replaces what would break the line of a message.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, text)
}
