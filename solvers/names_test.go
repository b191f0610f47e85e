package solvers

import "github.com/halox/halox/solvers/scheme"

// Names of package scheme, as the tests use them.
type (
	Scheme  = scheme.Scheme
	Order   = scheme.Order
	Norm    = scheme.Norm
	Options = scheme.Options
)

const (
	Baseline  = scheme.Baseline
	TwoStream = scheme.TwoStream
	Assisted  = scheme.Assisted
	Graph     = scheme.Graph
	Blocked   = scheme.Blocked
	Fused     = scheme.Fused
	Ranks     = scheme.Ranks
	Resident  = scheme.Resident

	LeftRight = scheme.LeftRight
	Pairwise  = scheme.Pairwise

	MaxNorm = scheme.MaxNorm
	L2Norm  = scheme.L2Norm

	StoppedSteps       = scheme.StoppedSteps
	StoppedTolerance   = scheme.StoppedTolerance
	StoppedInterrupted = scheme.StoppedInterrupted
	StoppedDiverged    = scheme.StoppedDiverged
)

// ErrUnsuited is that of package scheme.
var ErrUnsuited = scheme.ErrUnsuited

// Schemes returns all schemes.
func Schemes() []Scheme { return scheme.All() }
