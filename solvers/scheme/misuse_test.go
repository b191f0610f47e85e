package scheme

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// Nil arguments return an error that names them.
func TestNilArguments(t *testing.T) {
	set := testdevices.Host(t, 2)
	step := newStep(t, set, 2, 16)
	plan := must(step.Plan(set.Links, p2p.Auto))(t)
	fastest := func(_ []Trial, _ bool, err error) error { return err }
	measured, twice, never, fastly := *step, *step, *step, *step
	measured.Measured = []*Variable{nil}
	twice.Measured = []*Variable{step.Measured[0], step.Measured[0]}
	never.Length, fastly.Sums = math.NaN(), "fastly"
	session, other := openHost(t, 2)
	elsewhere := newStep(t, other, 2, 16)
	var none *Step
	var noRunner *Runner
	var noVariable *Variable
	var noContext context.Context
	runner := runnerBy(t, set, step, p2p.Auto)
	for name, c := range map[string]struct {
		says string
		err  error
	}{
		"no step":                 {"Step.Stages must not be empty", none.Check()},
		"a plan of no step":       {"Step.Stages must not be empty", errOf(none.Plan(set.Links, p2p.Auto))},
		"a plan over no links":    {"the links of a plan are nil", errOf(step.Plan(nil, p2p.Auto))},
		"a runner of no step":     {"Step.Stages must not be empty", errOf(NewRunner(t.Context(), nil, plan, set.Compiler))},
		"a runner of no plan":     {"plan is nil", errOf(NewRunner(t.Context(), step, nil, set.Compiler))},
		"a runner by no compiler": {"compiler is nil", errOf(NewRunner(t.Context(), step, plan, nil))},
		"norms of nothing":        {"Step.Measured is nil", measured.Check()},
		"no session":              {"session is nil", errOf(New(t.Context(), nil, step, Options{}))},
		"trials of no step":       {"Step.Stages must not be empty", fastest(Fastest(t.Context(), nil, Search{Compiler: set.Compiler}, Options{}))},
		"trials by no compiler":   {"Search.Compiler must not be nil", fastest(Fastest(t.Context(), step, Search{Links: set.Links}, Options{}))},
		"a variable nowhere":      {"placement is nil", errOf(NewVariable(nil, halo.Spec{Name: "u", Element: halo.Float64}, 2))},
		"an access to nothing":    {"the variable of an access is nil", (&Step{Stages: []Stage{{Writes: []Access{noVariable.At(1, nil)}}}}).Check()},
		"norms taken twice":       {"Step.Measured twice", twice.Check()},
		"a length of NaN":         {"Step.Length must be finite, got NaN", never.Check()},
		"unknown sums":            {`got "fastly"`, fastly.Check()},
		"another session":         {"of another", errOf(New(t.Context(), session, step, Options{}))},
		"no context":              {"context is nil", errOf(New(noContext, session, elsewhere, Options{}))},
		"a runner by no context":  {"context is nil", errOf(NewRunner(noContext, step, plan, set.Compiler))},
		"trials by no context":    {"context is nil", fastest(Fastest(noContext, step, Search{Compiler: set.Compiler}, Options{}))},
		"a dry run by no context": {"context is nil", errOf(DryRun(noContext, step, plan, set.Compiler, Options{}))},
		"a dry run of no plan":    {"plan is nil", errOf(DryRun(t.Context(), step, nil, set.Compiler, Options{}))},
		"steps by no context":     {"context is nil", errOf(runner.Steps(noContext, 1))},
		"steps of no runner":      {"runner is nil", errOf(noRunner.Steps(t.Context(), 1))},
		"a run of no runner":      {"runner is nil", errOf(noRunner.Run(t.Context(), Options{Steps: 1}))},
		"a dry run of no runner":  {"runner is nil", errOf(noRunner.DryRun(t.Context(), Options{}))},
		"a level of no variable":  {"variable is nil", noVariable.SetNewest(1)},
		"levels of no variable":   {"variable is nil", noVariable.SetAll()},
	} {
		wants(t, name, c.err, nil, c.says)
	}
	boundary, interior := noRunner.Boxes(0, 0)
	outside, _ := runner.Boxes(1, 2)
	if noRunner.Placement() != nil || noRunner.Plans() != nil || noRunner.Done() != 0 || noRunner.Tuning() != nil ||
		boundary != nil || !interior.Empty() || outside != nil {
		t.Error("a nil runner is not empty")
	}
	if noVariable.Levels() != 0 || noVariable.Level(1) != nil || noVariable.Newest() != 0 {
		t.Error("a nil variable is not empty")
	}
	Ahead(noContext, step, Search{Compiler: set.Compiler}, Options{}).Stop()
	succeeds(t, errors.Join(noRunner.Close(), noVariable.Close()))
}

// After the context has ended nothing is prepared.
func TestNewChecksContext(t *testing.T) {
	session, set := openHost(t, 1)
	step := newStep(t, set, 1, 8)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	plan := must(step.Plan(set.Links, p2p.Auto))(t)
	for name, err := range map[string]error{
		"New":       errOf(New(ended, session, step, Options{})),
		"NewRunner": errOf(NewRunner(ended, step, plan, set.Compiler)),
		"Cut":       errOf(session.Cut(ended, halo.Cutting{Size: []int{8, 8}, Parts: []int{1, 1}})),
	} {
		wants(t, name, err, context.Canceled, "")
	}
}
