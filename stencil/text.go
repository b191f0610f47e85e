package stencil

import (
	"fmt"
	"strconv"
	"strings"
)

// mostSteps is the largest number of operations, variables and numbers in the text of an expression of a form.
const mostSteps = 100

// Text returns the text of an expression that was parsed, or writes that of a part of a form.
func (e *Expression) Text() string {
	if e.source != "" {
		return e.source
	}
	left := mostSteps
	return bare(e.program.text(e.program.root, &left))
}

// bare returns a text without parentheses around all: none else begins with them.
func bare(text string) string {
	if strings.HasPrefix(text, "(") {
		return text[1 : len(text)-1]
	}
	return text
}

// text writes a step with everything that it depends on. left is how many more may be written.
func (p *program) text(at int, left *int) string {
	s := &p.steps[at]
	if *left--; *left < 0 {
		return "..."
	}
	if s.op == nil {
		return s.leafText()
	}
	var args []string
	for _, a := range s.operands() {
		args = append(args, p.text(a, left))
	}
	switch name := s.op.name; {
	case s.op == choice || s.op == choiceOfConditions:
		return fmt.Sprintf("(%s ? %s : %s)", args[0], args[1], args[2])
	case s.op == negation:
		return "-" + args[0]
	case s.op == product && s.args[0] == s.args[1] && p.steps[s.args[0]].op == nil:
		return args[0] + "^2"
	case s.op == inversion:
		return "not " + args[0]
	case functions[name] == nil:
		return "(" + strings.Join(args, " "+name+" ") + ")"
	default:
		for i := range args {
			args[i] = bare(args[i])
		}
		return name + "(" + strings.Join(args, ", ") + ")"
	}
}

// leafText writes a number or a variable.
func (s *step) leafText() string {
	switch {
	case s.leaf == "":
		return strconv.FormatFloat(s.value, 'g', -1, 64)
	case s.leaf == noise:
		return fmt.Sprintf("noise(%v)", s.value)
	}
	return s.leaf
}
