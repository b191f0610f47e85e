package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// setSource is the source of overrides in messages, after their flag.
const setSource = "--set"

// A Problem is one error in a config. Its message is one line.
type Problem struct {
	Source string // the file, the name of an environment variable, or "--set"
	Line   int    // line in the file, from 1; 0 if unknown
	Key    string // as the user wrote it; "" if the problem is with the whole source
	Value  string // as the user wrote it, truncated; "" if irrelevant
	Reason string // the requirement
}

// Error returns, for example: heat3d.yaml:7: precision: must be float64 or float32, got "half"
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Source)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	b.WriteString(": " + p.Reason)
	if p.Value != "" {
		b.WriteString(", got " + p.Value)
	}
	return b.String()
}

// Problems are all errors in a config: those of the file by line, then those of the environment, then those
// of the overrides. After 20 of them, the last one is the number of the rest.
type Problems []Problem

// Error returns one line per problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for n, problem := range p {
		lines[n] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a Problem.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for n, problem := range p {
		errs[n] = problem
	}
	return errs
}

// add adds a problem, unless one with the same key and line is known: an axis sets two faces. A nil value is
// not shown.
func (p *Problems) add(at origin, key string, value *yaml.Node, reason string, args ...any) {
	found := Problem{
		Source: at.source,
		Line:   at.line,
		Key:    short(key, 4*maxShown),
		Reason: fmt.Sprintf(reason, args...),
	}
	if value != nil {
		found.Value = show(value)
	}
	for _, other := range *p {
		if key != "" && other.Source == at.source && other.Line == at.line && other.Key == found.Key {
			return
		}
	}
	*p = append(*p, found)
}

// maxProblems is the maximum number of reported problems.
const maxProblems = 20

// sorted sorts the problems for the report, and counts those that are omitted.
func (p Problems) sorted(file string) Problems {
	rank := func(q Problem) int {
		return slices.Index([]bool{q.Source == file, q.Source != setSource, true}, true)
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line))
	})
	if more := len(p) - maxProblems; more > 0 {
		p = append(p[:maxProblems], Problem{Source: file, Reason: fmt.Sprintf("has %d more problems", more)})
	}
	return p
}

// An origin is where a setting comes from. The zero value means the defaults.
type origin struct {
	source string // as in Problem
	line   int
}

// maxShown is the maximum number of characters of a value in a message.
const maxShown = 60

// show formats a value as the user would recognize it, in one short line.
func show(n *yaml.Node) string {
	var text strings.Builder
	write(&text, n)
	return short(printable(text.String()), maxShown)
}

// write appends a value as YAML in one line with quoted texts, until it is long enough.
func write(text *strings.Builder, n *yaml.Node) {
	switch {
	case text.Len() > 4*maxShown:
	case n.Kind == yaml.AliasNode:
		text.WriteString("*" + n.Value)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		text.WriteString(strconv.Quote(n.Value))
	case n.Kind == yaml.ScalarNode:
		text.WriteString(cmp.Or(n.Value, "null"))
	case n.Kind == yaml.SequenceNode:
		text.WriteString("[")
		for i, item := range n.Content {
			text.WriteString(", "[:min(2*i, 2)])
			write(text, item)
		}
		text.WriteString("]")
	case n.Kind == yaml.MappingNode:
		text.WriteString("{")
		for i := 0; i+1 < len(n.Content); i += 2 {
			text.WriteString(", "[:min(i, 2)] + n.Content[i].Value + ": ")
			write(text, n.Content[i+1])
		}
		text.WriteString("}")
	}
}

// short truncates a text.
func short(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

// printable replaces characters that would break the line of a message.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, text)
}

// either joins words as "a, b or c".
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
