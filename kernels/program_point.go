package kernels

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/halox/halox/streams"
)

// sourcesForCPU are what stands for CUDA where the sources are compiled as C++, and the flags of
// the compiler.
//
//go:embed cu/cpu cu/compile_flags.txt
var sourcesForCPU embed.FS

// PointProgram returns a program of this package's sources that includes accesses.cuh, with the
// given text: what kernels/sweep compiles.
func PointProgram(file, accesses string, defines ...string) Program {
	return Program{File: file, Defines: defines, access: accesses}
}

// StepsProgram is the same for programs of several stages, each with its part of accesses.cuh: stages is
// stages.cuh.
func StepsProgram(file, stages, accesses string) Program {
	return Program{File: file, access: accesses, stages: stages}
}

// Load returns the named kernels of the program, compiled for the device and loaded on it. What
// was compiled once is kept, on disk too.
func (c *Compiler) Load(d *streams.Device, p Program, names ...string) ([]streams.Function, error) {
	return c.load(d, p, names...)
}

// LoadSteps is Load of a program that makes time steps, into which tests may have faults injected.
func (c *Compiler) LoadSteps(d *streams.Device, p Program, names ...string) ([]streams.Function, error) {
	return c.load(d, c.injectFault(d, p), names...)
}

// Image returns the program compiled for an architecture, as "sm_90".
func (c *Compiler) Image(p Program, arch string) ([]byte, error) { return c.image(p, arch) }

// Files returns all sources of the program by name, and those under cpu/ that stand for CUDA where
// they are compiled as C++ for the CPU.
func (p Program) Files() (map[string]string, error) {
	source, err := p.source()
	if err != nil {
		return nil, err
	}
	files := map[string]string{p.File: source.Text}
	for _, h := range source.Headers {
		files[h.Name] = h.Text
	}
	names, err := fs.Glob(sourcesForCPU, "cu/cpu/*.h")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := sourcesForCPU.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[strings.TrimPrefix(name, "cu/")] = string(text)
	}
	return files, nil
}
