package temporal

import (
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/stencil"
)

func option(name string, value int) string { return fmt.Sprintf("%s=%d", name, value) }

// programOf returns a program for passes of a stencil.
func programOf(file string, s stencil.Stencil, real kernels.Real, options ...string) kernels.Program {
	c := map[kernels.Real]string{kernels.Float32: "float", kernels.Float64: "double"}[real]
	return kernels.Program{
		File: file, Defines: append([]string{"REAL=" + c}, options...),
		Headers: []kernels.Header{{Name: source.StencilHeader, Text: source.Stencil(s, real.Size())}},
		Mirrors: []kernels.Mirror{{Name: "Pass", Value: passArgs{}}},
	}
}

// withOptions returns the program of passes with options.
func withOptions(o Options, p kernels.Program) kernels.Program {
	if o.plain() {
		return p
	}
	p.Defines = append(p.Defines, o.defines()...)
	p.Mirrors = []kernels.Mirror{{Name: "Pass", Value: morePassArgs{}}, {Name: "Wall", Value: wallArgs{}}}
	if o.Norms > 0 {
		p.Mirrors = append(p.Mirrors, kernels.Mirror{Name: "NormSum", Value: reduce.Norms{}})
	}
	return p
}

// defines are the build options of kernels.
func (o Options) defines() (all []string) {
	if o.Norms > 0 {
		all = append(append(all, option("NORMS", o.Norms)), o.Sums.Defines()...)
	}
	if o.Moving {
		all = append(all, "MOVING")
	}
	return all
}
