package scheme

import (
	"context"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// What is nil is an error that says so.
func TestWhatIsNilIsRefused(t *testing.T) {
	set := testdevices.Host(t, 2)
	step := newStep(t, set, 2, 16)
	plan := must(step.Plan(set.Links, p2p.Auto))(t)
	fastest := func(_ []Trial, _ bool, err error) error { return err }
	measured := *step
	measured.Measured = []*Variable{nil}
	var none *Step
	for name, c := range map[string]struct {
		says string
		err  error
	}{
		"no step":                 {"without stages", none.Check()},
		"a plan of no step":       {"without stages", errOf(none.Plan(set.Links, p2p.Auto))},
		"a plan over no links":    {"without links", errOf(step.Plan(nil, p2p.Auto))},
		"a runner of no step":     {"without stages", errOf(NewRunner(t.Context(), nil, plan, set.Compiler))},
		"a runner of no plan":     {"plan is nil", errOf(NewRunner(t.Context(), step, nil, set.Compiler))},
		"a runner by no compiler": {"compiler is nil", errOf(NewRunner(t.Context(), step, plan, nil))},
		"norms of nothing":        {"Step.Measured is nil", measured.Check()},
		"no session":              {"session is nil", errOf(New(t.Context(), nil, step, Options{}))},
		"trials of no step":       {"without stages", fastest(Fastest(t.Context(), nil, Search{Compiler: set.Compiler}, Options{}))},
		"trials by no compiler":   {"without a compiler", fastest(Fastest(t.Context(), step, Search{Links: set.Links}, Options{}))},
		"a variable nowhere":      {"placement is nil", errOf(NewVariable(nil, halo.Spec{Name: "u", Element: halo.Float64}, 2))},
		"an access to nothing":    {"no variable", (&Step{Stages: []Stage{{Writes: []Access{{}}}}}).Check()},
	} {
		wants(t, name, c.err, nil, c.says)
	}
}

// When the context has ended nothing is made ready.
func TestNewLooksAtTheContext(t *testing.T) {
	session, set := openHost(t, 1)
	step := newStep(t, set, 1, 8)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	plan := must(step.Plan(set.Links, p2p.Auto))(t)
	for name, err := range map[string]error{
		"New":       errOf(New(ended, session, step, Options{})),
		"NewRunner": errOf(NewRunner(ended, step, plan, set.Compiler)),
		"Cut":       errOf(session.Cut(ended, halo.Cutting{Size: []int{8, 8}, Parts: domain.Vec{1, 1}})),
	} {
		wants(t, name, err, context.Canceled, "")
	}
}
