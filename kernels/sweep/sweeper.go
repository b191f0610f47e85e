package sweep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Sweeper makes sweeps of one point function ready for one device. It may be used by one
// goroutine at a time.
type Sweeper struct {
	compiler *kernels.Compiler
	device   *streams.Device
	plan     *plan
	form     form
	shape    Shape                          // of sweeps of large boxes
	untuned  bool                           // a dry run asked for the fastest shape, which is not known yet
	programs map[string]map[string]function // by the classes of arrays, and by name
}

type function = streams.Function

var errNoDevice = errors.New("sweep: the device is nil")

// New compiles a point function with its accesses for the device. The compiler's messages name the
// file and line of the source. On a host device the function needs its Go twin, see ErrNoTwin.
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
			return nil, fmt.Errorf("sweep: point function %q on device %v: %w", p.Name, d, ErrNoTwin)
		}
		return s, nil
	}
	_, err = s.functions(n.usualClasses())
	return s, err
}

// functions returns the kernels for arrays of such classes.
func (s *Sweeper) functions(c classes) (map[string]function, error) {
	key := fmt.Sprint(c)
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

// kernelNames are the names of all kernels of the program.
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

// program is what is compiled for arrays of such classes.
func (s *Sweeper) program(c classes) kernels.Program {
	return s.plan.programOf("point.cu", s.plan.source(c, s.form))
}

// Sweep makes a launch ready that applies the point function to the points of the boxes, which are
// at most six, owned, and do not overlap. Arrays that are written are no arrays that are read,
// except in place. Ghosts around the boxes are read, as far as the footprints reach.
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

// launchPlan prepares a planned launch, of a kernel or of its variant that measures.
func (s *Sweeper) launchPlan(name string, k *launchPlan, variant string, uses ...streams.Span) (*Launch, error) {
	found, err := s.functions(k.classes)
	if err != nil {
		return nil, err
	}
	spec := streams.KernelSpec{Name: name, Work: streams.Sweep, Uses: append(spansOf(k.arrays), uses...)}
	spec.Function, spec.Grid, spec.Block = found[k.kernel+variant], k.grid, k.block
	var frame int
	spec.Argument, frame = k.argument(s.plan)
	return s.launch(spec, frame)
}

// launch makes a launch ready whose frame begins so far into its argument.
func (s *Sweeper) launch(spec streams.KernelSpec, frame int) (*Launch, error) {
	spec.Early = true // kernels wait by themselves, see grid_dependency_wait in device.cuh
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
		return fail(fmt.Errorf("a sweep over %d boxes; must be between 1 and %d", len(boxes), maxBoxes))
	}
	if len(arrays) != len(s.plan.accesses) {
		return fail(fmt.Errorf("arrays of %d accesses, not of %d", len(arrays), len(s.plan.accesses)))
	}
	for i, a := range s.plan.accesses {
		if len(arrays[i]) != a.components() {
			return fail(fmt.Errorf("access %q has %d components, not %d", a.Name, a.components(), len(arrays[i])))
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

// checkArray returns an error unless the boxes and all that is read around them lie in an array of
// one value a point.
func checkArray(a Access, component int, array kernels.Array, boxes []domain.Box) error {
	if size := a.Element.size(); array.Layout.ElementSize != size {
		return fmt.Errorf("elements of %d bytes are no %s; components that lie together have no sweep",
			array.Layout.ElementSize, a.Element)
	}
	for _, b := range boxes {
		if err := array.Holds(b.Grow(a.footprint(component).Radius())); err != nil {
			return err
		}
	}
	return nil
}

// checkOverlap returns an error if an array that is written is another one too.
func (n *plan) checkOverlap(arrays []kernels.Array) error {
	for _, w := range n.writes {
		for i, other := range arrays {
			a, b := arrays[w.array].Data, other.Data
			if i != w.array && a.Memory == b.Memory && a.Offset < b.Offset+b.Length && b.Offset < a.Offset+a.Length {
				return fmt.Errorf(
					"access %q is written where another access lies; "+
						"an update in place is one access that is read and written",
					n.accesses[w.access].Name)
			}
		}
	}
	return nil
}

// Launch is a sweep made ready. It is launched any number of times; each takes the moment and the
// parameters that were set last, by the thread that launches.
type Launch struct {
	*streams.Kernel
	plan  *plan
	frame []byte // in the argument
}

// SetMoment sets that of launches to come. It allocates nothing.
func (l *Launch) SetMoment(m Moment) { putMoment(l.frame, m) }

// putMoment puts struct Moment of site.cuh.
func putMoment(frame []byte, m Moment) {
	binary.NativeEndian.PutUint64(frame, uint64(m.Step))
	binary.NativeEndian.PutUint64(frame[8:], math.Float64bits(m.Start))
	binary.NativeEndian.PutUint64(frame[16:], math.Float64bits(m.Length))
}

// SetParameters sets those of launches to come: p points to a struct of the type of
// Point.Parameters. It allocates nothing.
func (l *Launch) SetParameters(p any) error {
	t := parametersType(l.plan.point.Parameters)
	if given := reflect.TypeOf(p); t == nil || given == nil || given.Kind() != reflect.Pointer || given.Elem() != t {
		return fmt.Errorf("sweep: point function %q takes parameters by a pointer to %v, not %T", l.plan.point.Name, t,
			p)
	}
	if reflect.ValueOf(p).IsNil() {
		return fmt.Errorf("sweep: point function %q: the pointer to its parameters, a %T, is nil", l.plan.point.Name, p)
	}
	copy(l.frame[frameNumbers*8:], unsafe.Slice((*byte)(reflect.ValueOf(p).UnsafePointer()), t.Size()))
	return nil
}

// ErrFootprint says that a point function reads what its accesses do not say.
var ErrFootprint = errors.New("a point function reads an offset that is no constant of the footprint")

var (
	besideFootprint  = regexp.MustCompile(`offset_beside_the_footprint_of_(\w+)`)
	outsideComponent = regexp.MustCompile(`component_outside_of_an_access`)
	unknownName      = regexp.MustCompile(
		`identifier "(\w+)" is undefined|['‘](\w+)['’] was not declared`) // by NVRTC, by g++
	misused       = regexp.MustCompile(`(at|set)\(\) of an access that is only (written|read)`) // see site.cuh
	otherFunction = regexp.MustCompile(`NameOfAnotherFunction`)
)

// misusedAt finds the place in the source, and the access, of which at or set is called though it is not read or not
// written. The messages of the compiler name the line.
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

// explain says what it means that the compiler found no function of certain names, see access.cuh.
func (n *plan) explain(err error) error {
	if m := besideFootprint.FindStringSubmatch(err.Error()); m != nil {
		a := n.accesses[n.find(m[1])]
		all := a.footprint(0)
		for q := range a.components() {
			all = all.Join(a.footprint(q))
		}
		return fmt.Errorf(
			"sweep: %s: at(%s, ...): %w, which is %v: unroll loops over offsets, or name the offset in the footprint",
			n.point.file(), m[1], ErrFootprint, all)
	}
	if outsideComponent.MatchString(err.Error()) {
		return fmt.Errorf(
			"sweep: %s: a component that its access does not have, or that is no constant: "+
				"unroll loops over components: %w",
			n.point.file(), ErrFootprint)
	}
	if m := misused.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("sweep: %s of an access that is only %s: say in the accesses of the stage that it does both",
			n.misusedAt(err.Error(), m[1]), m[2])
	}
	if otherFunction.MatchString(err.Error()) {
		return fmt.Errorf(
			"sweep: point function %q uses a name that is no access or reduction of its own, "+
				"but one in Point.Elsewhere: %w",
			n.point.Name, err)
	}
	if m := unknownName.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf(
			"sweep: point function %q has no access %q: a source is compiled for each of its functions "+
				"with the names of that one; those of others are for Point.Elsewhere: %w",
			n.point.Name, m[1]+m[2], err)
	}
	return fmt.Errorf("sweep: point function %q: %w", n.point.Name, err)
}
