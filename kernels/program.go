package kernels

import (
	"embed"
	"fmt"

	"github.com/halox/halox/stencil"
)

//go:embed cu/*.cu cu/*.cuh
var sources embed.FS

// Program is a CUDA source of this package with the options that fix its
// variant. Two programs with equal fields compile to the same code.
type Program struct {
	File    string   // under cu/
	Defines []string // NAME=VALUE
}

// String names the file and the variant.
func (p Program) String() string { return fmt.Sprintf("%s%v", p.File, p.Defines) }

// text returns the source, after what all of them share.
func (p Program) text() (string, error) {
	common, err := sources.ReadFile("cu/common.cuh")
	if err != nil {
		return "", err
	}
	body, err := sources.ReadFile("cu/" + p.File)
	if err != nil {
		return "", err
	}
	return string(common) + fmt.Sprintf("#line 1 %q\n", p.File) + string(body), nil
}

// realNames are the C names of the types.
var realNames = map[Real]string{Float32: "float", Float64: "double"}

func sweepProgram(s stencil.Star, r Real) Program {
	equal := 0
	if s.Equal {
		equal = 1
	}
	return Program{"sweep.cu", []string{
		"REAL=" + realNames[r], fmt.Sprintf("DIMS=%d", s.Dims), fmt.Sprintf("EQUAL=%d", equal),
	}}
}

func moveProgram() Program { return Program{"move.cu", nil} }

func normsProgram(r Real) Program {
	return Program{"norms.cu", []string{"REAL=" + realNames[r]}}
}

// Programs returns every program that this package may compile, for tests
// that compile them all.
func Programs() []Program {
	all := []Program{moveProgram()}
	for _, r := range []Real{Float32, Float64} {
		all = append(all, normsProgram(r))
		for _, dims := range []int{2, 3} {
			for _, equal := range []bool{false, true} {
				all = append(all, sweepProgram(stencil.Star{Dims: dims, Equal: equal}, r))
			}
		}
	}
	return all
}
