package main

import (
	"os"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// loadConfig loads a config of one process with overrides and the environment.
func loadConfig(file string, set []string) (*configs.Run, error) {
	return loadConfigOf(1, file, set)
}

// loadConfigOf loads a config of so many processes.
func loadConfigOf(processes int, file string, set []string) (*configs.Run, error) {
	return configs.Load(file, configs.Options{
		Processes:       processes,
		Set:             set,
		Environ:         os.Environ(),
		CheckExpression: checkExpression,
		Schemes:         configSchemes(),
		Paths:           texts(p2p.Paths()),
		Networks:        texts(mpi.Networks()),
		Stencils:        configStencils(),
		UnitSpacing:     unitSpacing,
	})
}

// configSchemes tells the config what the schemes can take.
func configSchemes() (all []configs.Scheme) {
	for _, name := range scheme.All() {
		n := needsOf(name)
		all = append(all, configs.Scheme{Name: string(name), Orders: texts(n.Orders), Paths: texts(n.Paths), Steady: n.Steady, Groups: n.Groups})
	}
	return all
}

// configStencils tells the config which stencils there are.
func configStencils() (all []configs.StencilKind) {
	for _, dims := range []int{2, 3} {
		for _, k := range stencil.Kinds(dims) {
			selects := configs.Stencil{Points: k.Points, Shape: string(k.Shape)}
			all = append(all, configs.StencilKind{Dims: dims, Stencil: selects, OneSpacing: k.OneSpacing(), StableStep: k.StableStep})
		}
	}
	return all
}

// unitSpacing tells the config how points lie between the ends of an axis.
func unitSpacing(points int, ends [2]configs.FaceKind) float64 {
	return solvers.Axis{Points: points, Ends: [2]solvers.WallKind{wallKind(ends[0]), wallKind(ends[1])}}.UnitSpacing()
}

// needsOf returns what a scheme needs; nothing of one that there is not.
func needsOf(s scheme.Scheme) scheme.Needs {
	needs, _ := scheme.NeedsOf(s)
	return needs
}

// texts returns names as a config has them.
func texts[T ~string](names []T) (all []string) {
	for _, name := range names {
		all = append(all, string(name))
	}
	return all
}

// checkExpression parses an expression of a config.
func checkExpression(src string) (uses func(variable string) bool, err error) {
	e, err := stencil.Parse(src)
	if err != nil {
		return nil, err
	}
	return e.Uses, nil
}
