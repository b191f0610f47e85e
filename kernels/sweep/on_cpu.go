package sweep

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/halox/halox/kernels"
)

// mainOnCPU is the main program behind the kernels on the CPU.
//
//go:embed cpu/main.h
var mainOnCPU string

// ErrNoCompiler says that there is no C++ compiler to run CUDA sources on the CPU.
var ErrNoCompiler = errors.New("no g++, which is needed to run CUDA sources without a GPU")

// onCPU is the kernels of a point function, compiled as C++ for the CPU, where the threads of a
// launch run one after the other. It is a process that makes one launch after the other.
type onCPU struct {
	plan    *plan
	folder  string
	process *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	problem bytes.Buffer
}

// newOnCPU compiles the kernels for arrays of such classes, and starts them.
func newOnCPU(n *plan, f form, c classes) (r *onCPU, err error) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		return nil, ErrNoCompiler
	}
	r = &onCPU{plan: n}
	if r.folder, err = os.MkdirTemp("", "halox-point-"); err != nil {
		return nil, err
	}
	folder := r.folder
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	program := n.programOf("point.cu", n.source(c, f))
	if err := writeSources(r.folder, program, f, n); err != nil {
		return nil, err
	}
	binary := filepath.Join(r.folder, "kernels")
	build := exec.Command(compiler, "-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-o", binary, filepath.Join(r.folder, "main.cc"))
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("sweep: point function %q, as C++: %w\n%s", n.point.Name, err, out)
	}
	return r, r.start(binary)
}

// writeSources writes the program with a main program behind it.
func writeSources(folder string, p kernels.Program, f form, n *plan) error {
	files, err := p.Files()
	if err != nil {
		return err
	}
	main := ""
	for _, name := range p.Defines {
		main += fmt.Sprintf("#define %s\n", name)
	}
	main += "#include \"cpu/cuda.h\"\n#include \"point.cu\"\nstatic const struct {\n\tconst char *name;\n\tvoid (*run)(Sweep);\n} kernels[] = {\n"
	for _, name := range f.kernels() {
		main += fmt.Sprintf("\t{%q, %s},\n", name, name)
	}
	if n.totals() > 0 {
		for _, name := range f.measuredKernels() {
			main += fmt.Sprintf("\t{%q, %s},\n", name+withMeasured, name+withMeasured)
		}
	}
	files["main.cc"] = main + "};\n" + mainOnCPU
	if err := os.Mkdir(filepath.Join(folder, "cpu"), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *onCPU) start(binary string) (err error) {
	r.process = exec.Command(binary)
	r.process.Stderr = &r.problem
	if r.in, err = r.process.StdinPipe(); err != nil {
		return err
	}
	if r.out, err = r.process.StdoutPipe(); err != nil {
		return err
	}
	return r.process.Start()
}

// launch makes a planned launch with arrays of such contents, which it replaces, and a moment. It
// returns what blocks found.
func (r *onCPU) launch(k *launchPlan, variant string, contents [][]byte, m Moment) ([]slot, error) {
	arg, frame := k.argument(r.plan)
	(&Launch{plan: r.plan, frame: arg[frame:]}).SetMoment(m)
	var b bytes.Buffer
	var name [64]byte
	copy(name[:], k.kernel+variant)
	b.Write(name[:])
	for _, v := range [][3]int{k.grid, k.block} {
		binary.Write(&b, binary.NativeEndian, [4]int32{int32(v[0]), int32(v[1]), int32(v[2])})
	}
	var w words
	for _, c := range contents {
		w.put(int64(len(c)))
	}
	for _, a := range k.arrays {
		w.put(a.Layout.Offset([3]int{}) * int64(a.Layout.ElementSize))
	}
	var totals []byte
	if variant != "" {
		totals = make([]byte, 8*int64(r.plan.totals())*k.blocks())
	}
	w.put(int64(len(totals) / 8))
	b.Write(w)
	b.Write(arg)
	for _, c := range contents {
		b.Write(c)
	}
	var sent sync.WaitGroup
	sent.Go(func() { r.in.Write(b.Bytes()) }) // a process that failed does not read on; it says why
	defer sent.Wait()
	for _, c := range append(slices.Clone(contents), totals) {
		if _, err := io.ReadFull(r.out, c); err != nil {
			return nil, r.failed(err)
		}
	}
	var slots []slot
	for len(totals) > 0 {
		size := 8 * r.plan.totals()
		slots, totals = append(slots, totals[:size]), totals[size:]
	}
	return slots, nil
}

// failed returns what the process said.
func (r *onCPU) failed(err error) error {
	r.process.Wait()
	return r.plan.explain(fmt.Errorf("on the CPU: %w: %s", err, strings.TrimSpace(r.problem.String())))
}

// close ends the process and removes what was compiled.
func (r *onCPU) close() error {
	r.in.Close()
	err := r.process.Wait()
	return errors.Join(err, os.RemoveAll(r.folder))
}
