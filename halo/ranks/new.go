package ranks

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// New prepares the ranks of a program on devices of one backend: it compiles and loads the kernels and
// allocates memory. links determine which GPUs access each other directly; a proxy on the host serves the
// others. With nil links the caller guarantees that all devices can access each other.
//
// With Options.Processes all processes call New, each with its own devices, and get the same world: its ranks
// are numbered by process, and within a process by device. All then call NewWindow, NewChannel and Run in the
// same order. If one fails, all do.
func New(
	c *kernels.Compiler, devices []*streams.Device, links *p2p.Links, p Program, o Options,
) (world *World, err error) {
	o.Processes = o.Processes.OrAlone()
	wrong := checkAll(devices, p, o)
	if wrong != nil && o.Processes.IsAlone() {
		return nil, wrong
	}
	o.Limit = min(cmp.Or(o.Limit, limit), longest)
	w := &World{
		program: p, options: o, topology: topology{devices: devices}, grace: o.Limit + 10*time.Second,
		presets: map[int][][]byte{}, sizes: map[int][]int64{}, log: logger{to: o.Log},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if err := w.joinProcesses(wrong); err != nil {
		return nil, err
	}
	functions, err := w.prepare(c, links)
	if err := w.agreeOnRanks(err); err != nil {
		return nil, err
	}
	for _, m := range w.members {
		if err == nil {
			err = w.open(m)
		}
	}
	memories, err := w.gatherMemories(err)
	if err != nil {
		return nil, err
	}
	if err := w.agree("load the kernels", w.load(functions, memories)); err != nil {
		return nil, err
	}
	return w, nil
}

// checkAll returns an error if the program cannot run on these devices.
func checkAll(devices []*streams.Device, p Program, o Options) error {
	if err := p.check(); err != nil {
		return err
	}
	if len(devices) < 1 || len(devices) > MaxDevices {
		return fmt.Errorf("ranks: %s: must have between 1 and %d devices, got %d", p.Name, MaxDevices, len(devices))
	}
	if slices.Contains(devices, nil) {
		return fmt.Errorf("ranks: %s: a device is nil", p.Name)
	}
	if err := o.check(); err != nil {
		return fmt.Errorf("ranks: %s: %w", p.Name, err)
	}
	return nil
}

// prepare determines how devices access each other, compiles the kernels and counts ranks.
func (w *World) prepare(c *kernels.Compiler, links *p2p.Links) ([]streams.Function, error) {
	for i, d := range w.devices {
		if err := w.reach(links, d); err != nil {
			return nil, err
		}
		w.members = append(w.members, &member{index: w.before + i, device: d})
	}
	functions, err := w.functions(c)
	if err != nil {
		return nil, err
	}
	return functions, w.count(functions)
}

// load prepares the launches.
func (w *World) load(functions []streams.Function, memories []uint64) (err error) {
	for i, m := range w.members {
		if m.kernel, err = w.kernel(m, functions[i], memories); err != nil {
			return err
		}
		w.resources.Add(m.kernel)
	}
	if w.devices[0].GoKernels {
		state := newHostState(&w.topology, w.options.Queues)
		state.limit, state.log, state.codes = w.options.Limit, &w.log, w.program.Errors
		w.host = newHostRanks(state, w.program.Host)
		w.resources.Add(w.host)
	}
	return nil
}

// reach determines which devices a device accesses only by its proxy: those with unusable links, and all with
// Options.Proxy.
func (w *World) reach(links *p2p.Links, d *streams.Device) error {
	if d.GoKernels && w.program.Host == nil {
		return fmt.Errorf("ranks: %s has no version for CPU devices", w.program.Name)
	}
	served := uint64(0)
	for i, process := range w.owners {
		if process != w.owners[w.before] && !d.GoKernels {
			served |= 1 << i
		}
	}
	for i, other := range w.devices {
		if other.Backend != d.Backend {
			return fmt.Errorf("ranks: devices must have the same backend, got %v and %v", d, other)
		}
		if other == d || d.HostMemory || links == nil {
			continue
		}
		link := links.Between(d, other)
		if link == nil {
			return fmt.Errorf("ranks: %s: the links must include the link from %v to %v", w.program.Name, d, other)
		}
		if w.options.Proxy || !link.Usable {
			served |= 1 << (w.before + i)
		}
	}
	w.served = append(w.served, served)
	return nil
}

// functions returns the kernel of each device, nil for CPU devices.
func (w *World) functions(c *kernels.Compiler) (all []streams.Function, err error) {
	source := w.program.Source
	source.Defines = append(w.options.defines(), source.Defines...)
	if w.proxied() {
		source.Defines = append(source.Defines, "RANK_PROXY")
	}
	source.Mirrors = append(mirrors(), source.Mirrors...)
	for _, d := range w.devices {
		if d.GoKernels {
			all = append(all, nil)
			continue
		}
		found, err := c.Functions(d, source, w.program.Kernel)
		if err != nil {
			return nil, err
		}
		all = append(all, found[0])
	}
	return all, nil
}

// count sets the number of ranks per device: the minimum over the devices.
func (w *World) count(functions []streams.Function) error {
	for i, d := range w.devices {
		fits := 0 // unlimited
		if f := functions[i]; f != nil {
			each, err := f.AtOnce(w.program.Threads, w.program.Shared)
			if err != nil {
				return fmt.Errorf("ranks: %s: %w", w.program.Name, err)
			}
			fits = each * d.Cores / countOf(d, w.devices) // ranks of a GPU that is listed twice run at the same time
			if each == 0 {
				return fmt.Errorf(
					"ranks: %s: %w: none of %d threads with %d bytes of dynamic shared memory fits on a "+
						"multiprocessor of %v",
					w.program.Name, ErrNoRoom, w.program.Threads, w.program.Shared, d,
				)
			}
		}
		n := w.options.ranksOf(fits, d.Cores)
		if most := mostOnHosts / len(w.owners); d.GoKernels && n > most {
			return fmt.Errorf(
				"ranks: %s: %w: %d ranks on %v; each of %d CPU devices has up to %d", w.program.Name, ErrNoRoom, n, d,
				len(w.owners), most,
			)
		}
		if fits > 0 && n > fits {
			return fmt.Errorf(
				"ranks: %s: %w: %d ranks on %v, must be at most %d: %d on each of %d multiprocessors",
				w.program.Name, ErrNoRoom, n, d, fits, fits/d.Cores, d.Cores,
			)
		}
		if i == 0 || n < w.ranks {
			w.ranks = n
		}
	}
	return nil
}

// countOf returns how often a list contains a device.
func countOf(d *streams.Device, all []*streams.Device) (n int) {
	for _, other := range all {
		if other == d {
			n++
		}
	}
	return n
}

// opener opens what a device needs, until something fails. It is closed with the world.
type opener struct {
	w   *World
	d   *streams.Device
	err error
}

func opened[T io.Closer](o *opener, open func() (T, error)) (t T) {
	if o.err != nil {
		return t
	}
	if t, o.err = open(); o.err == nil {
		o.w.resources.Add(t)
	}
	return t
}

func (o *opener) stream(name string) *streams.Stream {
	return opened(o, func() (*streams.Stream, error) {
		s, err := o.d.NewStream(streams.Normal)
		if err == nil {
			s.SetName("%s", name)
		}
		return s, err
	})
}

// memory allocates memory of the device.
func (o *opener) memory(bytes int64) *streams.Memory {
	return opened(o, func() (*streams.Memory, error) { return o.d.Alloc(bytes) })
}

// pinned allocates zeroed pinned memory.
func (o *opener) pinned(bytes int64) *streams.Memory {
	return opened(o, func() (*streams.Memory, error) {
		m, err := o.d.AllocPinned(bytes)
		if err == nil {
			clear(m.Bytes())
		}
		return m, err
	})
}

// open allocates the memory and streams of a device.
func (w *World) open(m *member) error {
	o, b := &opener{w: w, d: m.device}, w.layout()
	m.stream = o.stream("ranks")
	m.ended = opened(o, m.device.NewEvent)
	if m.device.GoKernels {
		return o.err
	}
	const mostZeros = 1 << 20
	m.control = o.pinned(lineBytes)
	m.ender = o.stream("end of ranks")
	m.lines = o.pinned(logLines * int64(unsafe.Sizeof(logLine{})))
	m.memory = o.memory(b.bytes())
	m.staging = o.pinned(b.counts() + b.countBytes())
	m.zeros = o.pinned(min(mostZeros, b.bytes()-b.boxes()))
	if o.err != nil {
		return o.err
	}
	// First copies may have to wait for running kernels.
	if err := errors.Join(m.copyEnded(), m.ender.Sync(w.grace)); err != nil || !w.proxied() {
		return err
	}
	return w.openProxy(m, o)
}

// openProxy allocates what the proxy needs of a device, and uses its stream once: the first copies of a
// stream may wait for running kernels.
func (w *World) openProxy(m *member, o *opener) (err error) {
	m.commands = o.pinned(commands * int64(unsafe.Sizeof(command{})))
	m.proxied = o.stream("proxy of ranks")
	if !w.options.Queues { // with queues a notification is a store too, after those that it reports
		m.batch.room = o.pinned(commands * batchedMost)
		m.batch.pending = make([]*batchedStore, 0, commands)
	}
	if w.remote != nil && w.arrivals == nil {
		w.arrivals = o.pinned(arrivalBytes)
	}
	if o.err != nil {
		return o.err
	}
	if m.space, err = m.device.WrapMemory(spaceBegin, math.MaxInt64-spaceBegin); err != nil {
		return err
	}
	unused, host := m.memory.Span(memoryLines*lineBytes-8, 8), m.payloadOf(0, 8) // of an unused word
	return errors.Join(m.proxied.Copy(unused, host), m.proxied.Copy(host, unused), m.proxied.Sync(w.grace))
}

// kernel prepares the launch of a device.
func (w *World) kernel(m *member, f streams.Function, memories []uint64) (*streams.Kernel, error) {
	spec := streams.KernelSpec{Name: w.program.Name, Function: f, Cooperative: true}
	if m.device.GoKernels {
		spec.Run = func() { w.host.runAll(m.index - w.before) }
		return m.device.NewKernel(spec)
	}
	arg := argument{
		limit: w.options.Limit.Nanoseconds(), ranks: int64(w.ranks), devices: int64(len(w.owners)),
		device: int64(m.index), edges: w.layout().edges(), reciprocal: reciprocal(w.ranks),
		served: w.served[m.index-w.before], control: m.control.Address(),
		ended: m.memory.Address() + runEnded*lineBytes, log: m.lines.Address(),
	}
	copy(arg.memories[:], memories)
	for _, other := range w.members {
		if other != m && arg.served>>other.index&1 == 0 {
			spec.Reaches = append(spec.Reaches, other.memory.All())
		}
	}
	spec.Uses = []streams.Span{m.memory.All(), m.control.All(), m.lines.All()}
	if m.commands != nil {
		arg.commands = m.commands.Address()
		spec.Uses = append(spec.Uses, m.commands.All())
	}
	spec.Grid, spec.Block, spec.Shared = [3]int{w.ranks, 1, 1}, [3]int{w.program.Threads, 1, 1}, w.program.Shared
	spec.Argument = bytesOf(&arg)
	return m.device.NewKernel(spec)
}
