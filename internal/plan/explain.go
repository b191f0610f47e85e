package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/solvers"
)

// Explanation is a solvers.Explanation that can be printed.
type Explanation struct {
	*solvers.Explanation
	setup  *solvers.Setup
	solver string // what print calls the problem
}

// Explain explains a setup, see solvers.Setup.Explain, and prints it.
func Explain(ctx context.Context, s *solvers.Setup, solver string, out io.Writer) (*Explanation, error) {
	found, err := s.Explain(ctx)
	if err != nil {
		return nil, err
	}
	e := &Explanation{found, s, solver}
	e.print(out)
	return e, nil
}

// points lists offsets along the axes of the grid.
func (e *Explanation) points(all []domain.Vec) string {
	var text []string
	for _, p := range all {
		text = append(text, e.offset(p))
	}
	return strings.Join(text, " ")
}

func (e *Explanation) offset(p domain.Vec) string {
	return "(" + strings.Trim(strings.ReplaceAll(fmt.Sprint(p[:len(e.setup.Problem.Spacing)]), " ", ","), "[]") + ")"
}

// level names a time level.
func level(n int) string {
	switch n {
	case 0:
		return "now"
	case 1:
		return "next"
	}
	return fmt.Sprintf("now%+d", n)
}

// print prints the explanation.
func (e *Explanation) print(out io.Writer) {
	PrintHead(out, e.setup, e.solver)
	for i, s := range e.Stages {
		title := fmt.Sprintf("stage %d of %d, %s", i+1, len(e.Stages), s.Name)
		table(out, title, "access\tvariable\tlevel\tpoints\toffsets", func(t io.Writer) {
			for _, r := range s.Reads {
				fmt.Fprintf(t, "read %s\t%s\t%s\t%d\t%s\n", r.Name, r.Variable, level(r.Level), len(r.Points),
					e.points(r.Points))
			}
			for _, r := range s.Writes {
				fmt.Fprintf(t, "write %s\t%s\t%s\t1\n", r.Name, r.Variable, level(r.Level))
			}
		})
		total, kinds := 0, []string{}
		for _, op := range slices.Sorted(maps.Keys(s.Operations)) {
			total += s.Operations[op]
			kinds = append(kinds, fmt.Sprintf("%d %s", s.Operations[op], op))
		}
		fmt.Fprintf(out, "per point: %d bytes, %d operations (%s)\n", s.Bytes, total, strings.Join(kinds, ", "))
	}
	if len(e.Weights) > 0 {
		table(out, "stencil of a step", "offset\tweight", func(t io.Writer) {
			for _, w := range e.Weights {
				fmt.Fprintf(t, "%s\t%v\n", e.offset(w.Offset), w.Weight)
			}
		})
	}
	if len(e.Parts) > 0 {
		table(out, "parts of formulas", "name\tcomputed\texpression", func(t io.Writer) {
			for _, p := range e.Parts {
				when := "once, along " + strings.Join(strings.Split(p.Along, ""), ", ")
				if p.Stage > 0 {
					when = fmt.Sprintf("per step, for stage %d", p.Stage)
				}
				fmt.Fprintf(t, "%s\t%s\t%s\n", p.Name, when, p.Text)
			}
		})
	}
	fmt.Fprintln(out, "time step:", e.TimeStep)
	table(out, "variables", "variable\ttime levels\tghosts are exchanged", func(t io.Writer) {
		for _, name := range slices.Sorted(maps.Keys(e.Levels)) {
			var when []string
			for _, x := range e.Exchanged {
				if x.Variable == name && x.Stage > 0 {
					when = append(when, fmt.Sprintf("after stage %d, at %s", x.Stage, x.Corners))
				} else if x.Variable == name {
					when = append(when, fmt.Sprintf("once, at %s", x.Corners))
				}
			}
			if when == nil {
				when = []string{"never"}
			}
			fmt.Fprintf(t, "%s\t%d\t%s\n", name, e.Levels[name], strings.Join(when, "; "))
		}
	})
	table(out, "schemes on "+e.setup.Counted(), "scheme\truns", func(t io.Writer) {
		for _, s := range e.Schemes {
			runs := "yes"
			if s.Refusal != "" {
				runs = "no: " + s.Refusal
			}
			fmt.Fprintf(t, "%s\t%s\n", s.Scheme, runs)
		}
	})
	for i, s := range e.Stages {
		fmt.Fprintf(out, "\nCUDA of stage %d\n%s", i+1, s.CUDA)
	}
}

// MarshalJSON returns what Explain prints.
func (e *Explanation) MarshalJSON() ([]byte, error) {
	p := e.setup.Problem
	return json.Marshal(struct {
		Solver    string         `json:"solver"`
		Size      []int          `json:"size"`
		Precision domain.Element `json:"precision"`
		*solvers.Explanation
	}{e.solver, p.Grid.Size[:len(p.Spacing)], p.Element, e.Explanation})
}
