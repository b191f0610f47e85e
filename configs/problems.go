package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing wrong with a config. Its message is one line.
type Problem struct {
	Source string // the file, the name of a variable of the environment, or "--set"
	Line   int    // in the file, from 1; 0 when there is no line to name
	Key    string // as the user wrote it; "" when the problem is with the whole source
	Value  string // as the user wrote it, shortened; "" when there is none
	Reason string // what is wrong and what is allowed
}

// Error gives, for example: heat3d.yaml:7: precision: "half" is not allowed: float64 or float32
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Source)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	b.WriteString(": ")
	if p.Value != "" {
		b.WriteString(p.Value + " ")
	}
	return b.String() + p.Reason
}

// Problems are all the things wrong with a config: those of the file by line, then those of the environment, then those
// of the overrides.
type Problems []Problem

// Error gives one line for each problem.
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

func (p *Problems) add(at origin, key, value, reason string, args ...any) {
	*p = append(*p, Problem{at.source, at.line, key, value, fmt.Sprintf(reason, args...)})
}

// sorted puts the problems into the order in which they are told.
func (p Problems) sorted(file string) Problems {
	rank := func(q Problem) int {
		switch q.Source {
		case file:
			return 0
		case setSource:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line))
	})
	return p
}
