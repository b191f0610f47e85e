package sweep

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Sweeper prepares sweeps of one point function for one device. It may be used by one goroutine at a time.
type Sweeper struct {
	compiler *kernels.Compiler
	device   *streams.Device
	plan     *plan
	form     form
	shape    Shape                          // of sweeps of large boxes
	untuned  bool                           // a dry run requested the fastest shape, which is not known yet
	programs map[string]map[string]function // by the classes of arrays, and by name
}

type function = streams.Function

var errNoDevice = errors.New("sweep: the device is nil")

// New compiles a point function with its accesses for the device. Compiler messages contain the file and line of
// the source. On a CPU device the function needs its Go counterpart, see ErrNoCounterpart.
func New(c *kernels.Compiler, d *streams.Device, p Point, accesses []Access) (*Sweeper, error) {
	if d == nil {
		return nil, errNoDevice
	}
	n, err := newPlan(p, accesses)
	if err != nil {
		return nil, err
	}
	s := &Sweeper{compiler: c, device: d, plan: n, form: n.form(), programs: map[string]map[string]function{}}
	s.shape = s.form.shapes[0]
	if d.GoKernels {
		if !p.runsOnCPU() {
			return nil, fmt.Errorf("sweep: point function %q on device %v: %w", p.Name, d, ErrNoCounterpart)
		}
		if p.linear == nil && p.formula == nil && p.hasSource() { // others are generated
			if err := c.Check(s.program(n.usualClasses())); err != nil {
				return nil, n.explain(err)
			}
		}
		return s, nil
	}
	if !p.hasSource() {
		return nil, fmt.Errorf("sweep: point function %q on device %v: %w", p.Name, d, ErrNoSource)
	}
	_, err = s.functions(n.usualClasses())
	return s, err
}

// OverBoxes returns a function for halo.Placement.Kernels: it makes the launch of a point function over boxes of the
// subdomain of a rank, on its device. arrays returns the arrays of a subdomain.
func OverBoxes(
	c *kernels.Compiler, devices []*streams.Device, p Point, accesses []Access, arrays func(rank int) Arrays,
) func(rank int, boxes []domain.Box) (*streams.Kernel, error) {
	return func(rank int, boxes []domain.Box) (*streams.Kernel, error) {
		s, err := New(c, devices[rank], p, accesses)
		if err != nil {
			return nil, err
		}
		l, err := s.Sweep(p.Name, arrays(rank), boxes...)
		if err != nil {
			return nil, err
		}
		return l.Kernel, nil
	}
}

// functions returns the kernels for arrays of such classes.
func (s *Sweeper) functions(c classes) (map[string]function, error) {
	key := fmt.Sprint(c)
	if s.plan.table != nil {
		key += " with a table"
	}
	if found := s.programs[key]; found != nil {
		return found, nil
	}
	names := s.kernelNames()
	loaded, err := s.compiler.Load(s.device, s.program(c), names...)
	if err != nil {
		return nil, s.plan.explain(err)
	}
	found := map[string]function{}
	for i, name := range names {
		found[name] = loaded[i]
	}
	s.programs[key] = found
	return found, nil
}

// kernelNames returns the names of all kernels of the program.
func (s *Sweeper) kernelNames() []string {
	names := s.form.kernels()
	if s.plan.totals() > 0 {
		for _, name := range s.form.measuredKernels() {
			names = append(names, name+withMeasured)
		}
		names = append(names, "totals")
	}
	return names
}

// program returns the program for arrays of the given classes.
func (s *Sweeper) program(c classes) kernels.Program {
	return s.plan.programOf("point.cu", s.plan.source(c, s.form))
}

// Sweep prepares a launch that applies the point function to the points of the boxes, which must be owned, at most
// six, and without overlap. Written arrays must not also be read, except in place. Ghosts around the boxes are
// read, up to the footprints.
func (s *Sweeper) Sweep(name string, arrays Arrays, boxes ...domain.Box) (*Launch, error) {
	if err := s.check(arrays, boxes); err != nil {
		return nil, err
	}
	if s.device.GoKernels {
		return s.launch(s.plan.hostSpec(name, arrays, boxes, nil), 0)
	}
	k := s.plan.newLaunchPlan(s.form, slices.Concat(arrays...), boxes, s.shape)
	return s.launchPlan(name, &k, "")
}

// launchPlan prepares a planned launch, of a kernel or of its measured variant.
func (s *Sweeper) launchPlan(name string, k *launchPlan, variant string, uses ...streams.Span) (*Launch, error) {
	found, err := s.functions(k.classes)
	if err != nil {
		return nil, err
	}
	spec := streams.KernelSpec{Name: name, Work: streams.Sweep, Uses: append(spansOf(k.arrays), uses...)}
	spec.Uses = append(spec.Uses, s.plan.uses()...)
	spec.Function, spec.Grid, spec.Block = found[k.kernel+variant], k.grid, k.block
	var frame int
	spec.Argument, frame = k.argument(s.plan)
	return s.launch(spec, frame)
}

// launch prepares a launch with its frame at the given offset in its argument.
func (s *Sweeper) launch(spec streams.KernelSpec, frame int) (*Launch, error) {
	spec.Early = true // kernels wait themselves, see grid_dependency_wait in device.cuh
	k, err := s.device.NewKernel(spec)
	if err != nil {
		return nil, err
	}
	return &Launch{k, s.plan, k.Argument()[frame:]}, nil
}

// check returns an error unless the boxes of the arrays can be swept.
func (s *Sweeper) check(arrays Arrays, boxes []domain.Box) error {
	fail := func(err error) error { return fmt.Errorf("sweep: point function %q: %w", s.plan.point.Name, err) }
	if len(boxes) < 1 || len(boxes) > maxBoxes {
		return fail(fmt.Errorf("number of boxes must be between 1 and %d, got %d", maxBoxes, len(boxes)))
	}
	if len(arrays) != len(s.plan.accesses) {
		return fail(fmt.Errorf("must have arrays of %d accesses, got %d", len(s.plan.accesses), len(arrays)))
	}
	for i, a := range s.plan.accesses {
		if len(arrays[i]) != a.components() {
			return fail(fmt.Errorf("access %q must have %d components, got %d", a.Name, a.components(), len(arrays[i])))
		}
		for q, array := range arrays[i] {
			if err := checkArray(a, q, array, boxes); err != nil {
				return fail(fmt.Errorf("access %q: %w", a.Name, err))
			}
		}
	}
	if err := s.plan.checkOverlap(slices.Concat(arrays...)); err != nil {
		return fail(err)
	}
	return nil
}

// checkArray returns an error unless the boxes and all values read around them are in an array with one value per
// point.
func checkArray(a Access, component int, array kernels.Array, boxes []domain.Box) error {
	if size := a.Element.Size(); array.Layout.ElementSize != size {
		return fmt.Errorf("element size of %d bytes must be that of %s: components must be in separate arrays",
			array.Layout.ElementSize, a.Element)
	}
	if uniform := array.Layout.Uniform(); uniform != a.Constant[0] {
		return fmt.Errorf("must be constant along x like its array: got Constant %v, %t", a.Constant, uniform)
	}
	for _, b := range boxes {
		if err := array.Holds(b.Grow(a.footprint(component).Radius())); err != nil {
			return err
		}
	}
	return nil
}

// checkOverlap returns an error if a written array overlaps another.
func (n *plan) checkOverlap(arrays []kernels.Array) error {
	for _, w := range n.writes {
		for i, other := range arrays {
			a, b := arrays[w.array].Data, other.Data
			if i != w.array && a.Memory == b.Memory && a.Offset < b.Offset+b.Length && b.Offset < a.Offset+a.Length {
				return fmt.Errorf(
					"access %q must not overlap another access: "+
						"an update in place is one access that is read and written",
					n.accesses[w.access].Name)
			}
		}
	}
	return nil
}

// Launch is a prepared sweep. It may be launched repeatedly; each launch uses the moment and the parameters that
// were set last, by the thread that launches.
type Launch struct {
	*streams.Kernel
	plan  *plan
	given []byte // in the argument
}

// Set sets the moment and the parameters of future launches. give changes the parameters of the point function, unless
// it is nil. Launches that look up their frames, see Frames.Fed, use the moment's step instead. Set does not allocate.
func (l *Launch) Set(m Moment, give Give) error { return l.plan.set(l.given, m, give) }

// SetParameters sets those that launches to come begin with, also launches that were made before: p is a value of the
// type of Point.Parameters, or a pointer to one. Nothing is being launched meanwhile.
func (s *Sweeper) SetParameters(p any) error {
	t := parametersType(s.plan.point.Parameters)
	if t == nil || parametersType(p) != t {
		return fmt.Errorf("sweep: parameters of point function %q must be of type %v, got %T", s.plan.point.Name, t, p)
	}
	if v := reflect.ValueOf(p); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("sweep: parameters of point function %q: the pointer must not be nil, got a %T",
			s.plan.point.Name, p)
	}
	copy(s.plan.still[frameNumbers*8:], parameterBytes(p))
	return nil
}

// ErrFootprint means that a point function reads an offset that its accesses do not declare.
var ErrFootprint = errors.New("offsets must be constants in the footprint")

var (
	besideFootprint  = regexp.MustCompile(`offset_beside_the_footprint_of_(\w+)`)
	outsideComponent = regexp.MustCompile(`component_outside_of_an_access`)
	unknownName      = regexp.MustCompile(
		`identifier "(\w+)" is undefined|['‘](\w+)['’] was not declared`) // by NVRTC, by g++
	misused       = regexp.MustCompile(`(at|set)\(\) of an access that is only (written|read)`) // see site.cuh
	otherFunction = regexp.MustCompile(`NameOfAnotherFunction`)
)

// misusedAt finds the location in the source, and the access, of a call of at or set on an access that is not read
// or not written. Compiler messages contain the line.
func (n *plan) misusedAt(messages, call string) string {
	lines, file := strings.Split(n.point.CUDA, "\n"), regexp.QuoteMeta(n.point.file())
	places := regexp.MustCompile(`line (\d+) of ` + file + "|" + file + `:(\d+)`) // by NVRTC, by g++
	calls := regexp.MustCompile(`\b` + call + `\s*\(\s*(\w+)`)
	for _, place := range places.FindAllStringSubmatch(messages, -1) {
		line, err := strconv.Atoi(place[1] + place[2])
		if err != nil || line < 1 || line > len(lines) {
			continue
		}
		for _, c := range calls.FindAllStringSubmatch(lines[line-1], -1) {
			i := n.find(c[1])
			if i >= 0 && (call == "at" && !n.accesses[i].reads() || call == "set" && !n.accesses[i].Write) {
				return fmt.Sprintf("%s:%d: %s(%s, ...)", n.point.file(), line, call, c[1])
			}
		}
	}
	return fmt.Sprintf("%s: %s(...)", n.point.file(), call)
}

// explain adds the meaning of missing functions reported by the compiler, see access.cuh.
func (n *plan) explain(err error) error {
	if m := besideFootprint.FindStringSubmatch(err.Error()); m != nil {
		a := n.accesses[n.find(m[1])]
		all := a.footprint(0)
		for q := range a.components() {
			all = all.Join(a.footprint(q))
		}
		return fmt.Errorf(
			"sweep: %s: at(%s, ...): %w, which is %v: unroll loops over offsets, or add the offset to the footprint",
			n.point.file(), m[1], ErrFootprint, all)
	}
	if outsideComponent.MatchString(err.Error()) {
		return fmt.Errorf(
			"sweep: %s: components must be constants and exist in their access: "+
				"unroll loops over components: %w",
			n.point.file(), ErrFootprint)
	}
	if m := misused.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("sweep: %s of an access that is only %s: declare both in the accesses of the stage",
			n.misusedAt(err.Error(), m[1]), m[2])
	}
	if otherFunction.MatchString(err.Error()) {
		return fmt.Errorf(
			"sweep: point function %q: names must be accesses or reductions of this function, "+
				"not in Point.Elsewhere: %w",
			n.point.Name, err)
	}
	if m := unknownName.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf(
			"sweep: point function %q: access %q must exist: a source is compiled for each of its functions "+
				"with its names; names of others belong in Point.Elsewhere: %w",
			n.point.Name, m[1]+m[2], err)
	}
	return fmt.Errorf("sweep: point function %q: %w", n.point.Name, err)
}
