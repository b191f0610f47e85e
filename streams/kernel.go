package streams

import "fmt"

// KernelSpec is all that a launch needs, in both forms. A device takes the one that its
// backend runs, see Traits.GoKernels, and leaves the other alone.
type KernelSpec struct {
	Name string // for errors and traces
	Work Work   // for traces; none is OtherWork
	Uses []Span // the memory it touches: all of this device, or pinned
	// Memory of peers that it stores into, over links on which EnablePeer was
	// called.
	Reaches []Span

	// The Go form: what to run, in the stream's own goroutine.
	Run func()
	// The same for a kernel with an Argument, which gets it as it was when the
	// launch was queued or captured.
	RunWith func(argument []byte)

	// The CUDA form: the function, its geometry, the dynamic shared memory in bytes,
	// and its only parameter, a struct passed by value.
	Function    Function
	Grid, Block [3]int
	Shared      int
	Argument    []byte

	// Early lets a GPU that can, of compute capability 9.0 or later, start the kernel
	// while what is queued before it still ends, which saves a microsecond or two. All its
	// threads wait themselves, before all else (griddepcontrol.wait). It is for kernels
	// that do.
	Early bool

	// Cooperative has all thread blocks of a GPU run at the same time, as those must that wait for each
	// other. NewKernel refuses a grid of more than the GPU holds at once. Such a launch is not early.
	Cooperative bool
}

// Kernel is a launch made ready: it is queued any number of times, with the
// same arguments, and queuing it allocates nothing.
type Kernel struct {
	device   *Device
	name     string
	work     Work
	launcher launcher
}

// NewKernel makes a launch ready. It refuses memory of other devices: only
// copies cross.
func (d *Device) NewKernel(spec KernelSpec) (*Kernel, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	for _, u := range spec.Uses {
		if err := u.Check(); err != nil {
			return nil, d.fail(fmt.Errorf("it may not touch %v: %w", u, err), "prepare %s", spec.Name)
		}
		if !u.Memory.within(d) {
			return nil, d.fail(fmt.Errorf("it may not touch %v", u), "prepare %s", spec.Name)
		}
	}
	for _, r := range spec.Reaches {
		if err := r.Check(); err != nil {
			return nil, d.fail(fmt.Errorf("it cannot reach %v: %w", r, err), "prepare %s", spec.Name)
		}
		if !d.Reaches(r.Memory) {
			return nil, d.fail(fmt.Errorf("it cannot reach %v: peer access is not enabled", r), "prepare %s", spec.Name)
		}
	}
	l, err := d.driver.kernel(&spec)
	if err != nil {
		return nil, d.fail(err, "prepare %s", spec.Name)
	}
	k := &Kernel{device: d, name: spec.Name, work: spec.Work, launcher: l}
	if k.work == "" {
		k.work = OtherWork
	}
	return kept(d, k, l.close)
}

// Argument returns the argument of a launch, which may be changed between two launches by
// the thread that makes them: a launch takes a copy. It is nil of what runs by KernelSpec.Run.
func (k *Kernel) Argument() []byte {
	if a, ok := k.launcher.(argued); ok {
		return a.argument()
	}
	return nil
}

// Name returns the name given in the spec.
func (k *Kernel) Name() string { return k.name }

// Close frees the launch. Closing twice is no error.
func (k *Kernel) Close() error {
	if !k.device.drop(k) {
		return nil
	}
	return k.device.fail(k.launcher.close(), "free %s", k.name)
}

// Module is compiled code loaded on one GPU.
type Module struct {
	device *Device
	module module
}

// Function is a kernel of a module.
type Function interface {
	// Usage returns what one thread and one block of the kernel need.
	Usage() (Usage, error)
	// AtOnce returns how many blocks of so many threads, with so many bytes of dynamic shared memory,
	// one multiprocessor holds at a time.
	AtOnce(threads, shared int) (int, error)
}

// Usage is what a kernel of a GPU needs.
type Usage struct {
	Registers int // a thread
	Local     int // bytes a thread, spills among them
	Shared    int // bytes a block, static
	Threads   int // the most a block may have
}

// LoadModule loads a compiled image, a cubin or PTX, on a GPU.
func (d *Device) LoadModule(image []byte) (*Module, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	m, err := d.driver.module(image)
	if err != nil {
		return nil, d.fail(err, "load a module of %d bytes", len(image))
	}
	return kept(d, &Module{device: d, module: m}, m.close)
}

// Function returns the kernel of that name.
func (m *Module) Function(name string) (Function, error) {
	if err := m.device.alive(); err != nil {
		return nil, err
	}
	f, err := m.module.function(name)
	return f, m.device.fail(err, "find kernel %s", name)
}

// Close unloads the module. Closing twice is no error.
func (m *Module) Close() error {
	return m.device.discard(m, m.module.close, "unload a module")
}
