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
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// mainOnCPU is the main program for the kernels on the CPU.
//
//go:embed cpu/main.h
var mainOnCPU string

// ErrNoCompiler is returned by Check if there is no C++ compiler to run CUDA sources on the CPU.
var ErrNoCompiler = errors.New("no working g++ found, which is needed to run CUDA sources without a GPU")

// onCPU holds the kernels of a point function compiled as C++ for the CPU, where the threads of a launch run one
// after the other. It is a process that runs launches sequentially.
type onCPU struct {
	plan    *plan
	folder  string
	process *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	problem bytes.Buffer
}

// newOnCPU compiles the kernels for arrays of the given classes, and starts the process.
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
	files, err := n.filesOnCPU(c, f, f.kernels())
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(r.folder, "kernels")
	if err := n.build(compiler, r.folder, files, "-Og", "-o", binary); err != nil {
		return nil, err
	}
	return r, r.start(binary)
}

// folding lists the options with which a source is compiled to check that all its offsets are constants: inlined,
// with loops unrolled. Then only calls for non-constant offsets remain, see NEVER_LINKED. An offset that the
// compiler proves to be in the footprint may pass without being a constant. All kernels contain the same point
// function: one that measures is compiled, and the others, which are inline, are omitted.
var (
	folding = []string{
		"-O3", "-c", "--param=max-completely-peel-times=64", "--param=max-completely-peeled-insns=1000000",
		"--param=max-unrolled-insns=1000000",
	}
	folded = strings.NewReplacer("#define __global__\n", "#define __global__ inline\n",
		"inline void NAME() { cpu::trap(#NAME); }", "extern \"C\" void NAME();", "#define __forceinline__ inline\n",
		"#define __forceinline__ inline __attribute__((always_inline))\n", "#pragma unroll\n",
		"#pragma GCC unroll 64\n", `_Pragma("unroll")`, `_Pragma("GCC unroll 64")`)
)

// checkConstants returns an error, ErrFootprint, unless all offsets and components in the source are constants
// within its accesses, as a GPU needs them. It compiles the source without running it.
func (n *plan) checkConstants(f form) (err error) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		return ErrNoCompiler
	}
	folder, err := os.MkdirTemp("", "halox-point-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	files, err := n.filesOnCPU(n.usualClasses(), f, f.kernels()[:1])
	if err != nil {
		return err
	}
	for name, text := range files {
		files[name] = folded.Replace(text)
	}
	object := filepath.Join(folder, "main.o")
	if err := n.build(compiler, folder, files, append(folding, "-o", object)...); err != nil {
		return err
	}
	symbols, err := os.ReadFile(object)
	if err != nil {
		return err
	}
	for _, never := range []*regexp.Regexp{besideFootprint, outsideComponent} {
		if called := never.Find(symbols); called != nil {
			return n.explain(errors.New(string(called)))
		}
	}
	return nil
}

// build writes the files to a folder and compiles main.cc.
func (n *plan) build(compiler, folder string, files map[string]string, options ...string) error {
	if err := os.MkdirAll(filepath.Join(folder, "cpu"), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	options = append(
		[]string{"-std=c++17", "-w", "-ffp-contract=off", "-fno-strict-aliasing", filepath.Join(folder, "main.cc")},
		options...)
	if out, err := exec.Command(compiler, options...).CombinedOutput(); err != nil {
		if exec.Command(compiler, "-x", "c++", "-include", "cmath", "-fsyntax-only", os.DevNull).Run() != nil {
			return fmt.Errorf("%w: %s", ErrNoCompiler, out)
		}
		return n.explain(fmt.Errorf("as C++: %w\n%s", err, out))
	}
	return nil
}

// filesOnCPU returns the program with a main program that runs the given kernels, main.cc, by path.
func (n *plan) filesOnCPU(c classes, f form, names []string) (map[string]string, error) {
	program := n.programOf("point.cu", n.source(c, f))
	files, err := program.Files()
	if err != nil {
		return nil, err
	}
	main := ""
	for _, name := range program.Defines {
		main += fmt.Sprintf("#define %s\n", name)
	}
	main += "#include \"cpu/cuda.h\"\n#include \"point.cu\"\n" +
		"static const struct {\n\tconst char *name;\n\tvoid (*run)(Sweep);\n} kernels[] = {\n"
	for _, name := range names {
		main += fmt.Sprintf("\t{%q, %s},\n", name, name)
	}
	if n.totals() > 0 {
		for _, name := range f.measuredKernels() {
			if !slices.Contains(names, name) {
				continue
			}
			main += fmt.Sprintf("\t{%q, %s},\n", name+withMeasured, name+withMeasured)
		}
	}
	files["main.cc"] = main + "};\n" + mainOnCPU
	return files, nil
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

// launch runs a planned launch with the given contents of arrays, which it replaces, and a moment. It returns the
// slots of the blocks.
func (r *onCPU) launch(k *launchPlan, variant string, contents [][]byte, m Moment) ([]slot, error) {
	arg, frame := k.argument(r.plan)
	_ = r.plan.set(arg[frame:], m, nil) // only a Give fails
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
	sent.Go(func() { r.in.Write(b.Bytes()) }) // a failed process stops reading, and reports why
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

// failed returns the error output of the process.
func (r *onCPU) failed(err error) error {
	r.process.Wait()
	return r.plan.explain(fmt.Errorf("on the CPU: %w: %s", err, strings.TrimSpace(r.problem.String())))
}

// close ends the process and removes the compiled files.
func (r *onCPU) close() error {
	r.in.Close()
	var err error
	if r.process.ProcessState == nil { // not waited for by failed
		err = r.process.Wait()
	}
	return errors.Join(err, os.RemoveAll(r.folder))
}

// checkLimit is how long a launch may take before the device counts as stuck.
const checkLimit = 30 * time.Second

// onGPU runs the kernels of a point function on a device, with arrays on the host.
type onGPU struct {
	device  *streams.Device
	plan    *plan
	sweeper *Sweeper
}

func newOnGPU(c *kernels.Compiler, d *streams.Device, n *plan) (*onGPU, error) {
	s, err := New(c, d, n.point, n.accesses)
	return &onGPU{d, n, s}, err
}

// launch runs a launch with the given contents of arrays, which it replaces. It returns the norms and reductions.
func (k *onGPU) launch(
	arrays []kernels.Array, boxes []domain.Box, variant string, shape Shape, contents [][]byte, m Moment,
) (found slot, err error) {
	k.sweeper.shape = shape
	var made streams.Resources
	defer func() { err = errors.Join(err, made.Close()) }()
	stream, err := k.device.NewStream(streams.Normal)
	if err != nil {
		return nil, err
	}
	made.Add(stream)
	there, staged, err := k.upload(&made, stream, arrays, contents)
	if err != nil {
		return nil, err
	}
	launch, total, err := k.prepare(&made, k.plan.split(there), boxes, variant)
	if err != nil {
		return nil, err
	}
	if err := launch.Set(m, nil); err != nil {
		return nil, err
	}
	if err := stream.Launch(launch.Kernel); err != nil {
		return nil, err
	}
	if total != nil {
		if err := total.Queue(stream); err != nil {
			return nil, err
		}
	}
	for i, a := range there {
		if err := stream.Copy(staged[i].All(), a.Data.Memory.All()); err != nil {
			return nil, err
		}
	}
	if err := stream.Sync(checkLimit); err != nil {
		return nil, err
	}
	for i := range contents {
		copy(contents[i], staged[i].Bytes())
	}
	if total == nil {
		return nil, nil
	}
	return slices.Clone(slot(total.host.Bytes())), nil
}

// upload copies the contents to arrays of the device.
func (k *onGPU) upload(
	made *streams.Resources, s *streams.Stream, arrays []kernels.Array, contents [][]byte,
) (there []kernels.Array, staged []*streams.Memory, err error) {
	for i, a := range arrays {
		m, err := k.device.Alloc(int64(len(contents[i])))
		if err != nil {
			return nil, nil, err
		}
		made.Add(m)
		host, err := k.device.AllocPinned(int64(len(contents[i])))
		if err != nil {
			return nil, nil, err
		}
		made.Add(host)
		copy(host.Bytes(), contents[i])
		if err := s.Copy(m.All(), host.All()); err != nil {
			return nil, nil, err
		}
		there, staged = append(there, kernels.Array{Data: m.All(), Layout: a.Layout}), append(staged, host)
	}
	return there, staged, nil
}

// prepare prepares the sweep, or its measured variant.
func (k *onGPU) prepare(
	made *streams.Resources, arrays Arrays, boxes []domain.Box, variant string,
) (*Launch, *Totals, error) {
	if variant == "" {
		l, err := k.sweeper.Sweep("check", arrays, boxes...)
		if err == nil {
			made.Add(l)
		}
		return l, nil, err
	}
	all, total, err := k.sweeper.Measure(arrays, Portion{Name: "check", Boxes: boxes})
	if err != nil {
		return nil, nil, err
	}
	made.Add(total)
	return all[0], total, nil
}
