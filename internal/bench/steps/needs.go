package steps

import (
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// needsOf returns what a scheme needs; nothing of one that there is not.
func needsOf(s scheme.Scheme) scheme.Needs {
	needs, _ := scheme.NeedsOf(s)
	return needs
}

// takes reports whether a scheme can exchange over a path.
func takes(s scheme.Scheme, path p2p.Path) bool { return needsOf(s).CheckPath(s, path) == nil }
