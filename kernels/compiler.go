package kernels

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/streams"
)

// Options configures a Compiler.
type Options struct {
	NVRTC string // path of the NVRTC library; default: searched
	Cache string // cache folder; default: that in HALOX_CACHE, or else the user's

	// Disturb is for tests: it returns definitions for programs in which a device runs whole steps or exchanges, see
	// cu/faults.cuh. Default none.
	Disturb func(d *streams.Device) []string
}

// ErrNotCompiled means that the compiler rejects a program.
var ErrNotCompiled = errors.New("kernels: the program does not compile")

// notCompiled is an error of the compiler, which is also ErrNotCompiled.
type notCompiled struct{ error }

// Unwrap returns ErrNotCompiled and the error of the compiler.
func (e notCompiled) Unwrap() []error { return []error{ErrNotCompiled, e.error} }

// Compiler compiles kernels for the GPUs of this machine and keeps the result in memory, on disk and, while they
// are open, on the devices. CPU devices need no compiling. It may be used from any goroutine.
type Compiler struct {
	*compiled
	load loader // replaces Load in the compiler of an Ahead
}

type loader func(d *streams.Device, p Program, names []string) ([]streams.Function, error)

// compiled is the state that a compiler shares with its Aheads.
type compiled struct {
	options    Options
	cache      cache.Folder
	remembered remembered

	opening sync.Mutex
	nvrtc   *nvrtc.Compiler
	version string // of nvrtc
	closed  atomic.Bool
	running sync.RWMutex // read while a program is being compiled

	images      once[[]byte]          // by program and generation
	modules     once[*streams.Module] // by program and device
	begun, done atomic.Int64          // programs that were compiled
	checks      bool                  // Check compiles
	absent      atomic.Bool           // Check found no NVRTC
	cores       chan struct{}         // that Aheads compile on
}

// NewCompiler returns a compiler. NVRTC is searched when a GPU first needs it. If it is missing, the error of that
// call contains what to install and where it was searched.
func NewCompiler(o Options) *Compiler {
	return &Compiler{compiled: &compiled{
		options: o, cache: cache.At(o.Cache).Below("kernels"),
		cores: make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
	}}
}

// CompilerFromEnv returns a compiler that uses the NVRTC library in the variable HALOX_NVRTC, if it is set.
func CompilerFromEnv() *Compiler {
	c := NewCompiler(Options{NVRTC: os.Getenv("HALOX_NVRTC")})
	c.checks = true
	return c
}

// Check returns ErrNotCompiled if a program, of which a device runs the Go form, does not compile for GPUs. It is nil
// without NVRTC, and for compilers of NewCompiler.
func (c *Compiler) Check(p Program) error {
	if c == nil || !c.checks || c.absent.Load() {
		return nil
	}
	if c.open() != nil {
		c.absent.Store(true)
		return nil
	}
	archs, err := c.nvrtc.SupportedArchs()
	if err != nil || len(archs) == 0 {
		return nil
	}
	if _, err = c.image(p, fmt.Sprintf("sm_%d", slices.Max(archs))); errors.Is(err, ErrNotCompiled) {
		return err
	}
	return nil
}

// Prepare finds and loads NVRTC in the background. The first Load that needs it returns any error.
func (c *Compiler) Prepare() { go c.open() }

// Close cancels compilations in progress, and waits until they have ended and written to the cache. Later ones are
// errors. Loaded kernels stay loaded. It does nothing for a nil or closed compiler.
func (c *Compiler) Close() error {
	if c == nil {
		return nil
	}
	c.opening.Lock()
	again := c.closed.Swap(true)
	c.opening.Unlock()
	if again || c.nvrtc == nil {
		return nil
	}
	c.nvrtc.Cancel()
	c.running.Lock()
	defer c.running.Unlock()
	return c.nvrtc.Close()
}

var errClosed = errors.New("kernels: the compiler is closed, as its session is")

// Load returns the named kernels of the program, compiled for the device and loaded on it. Compiled programs are
// kept, on disk too. On a CPU device the functions are nil and nothing is compiled: launches have a Go form. For a
// device of a dry run they are loaded on the real device.
func (c *Compiler) Load(d *streams.Device, p Program, names ...string) ([]streams.Function, error) {
	switch {
	case c == nil:
		return nil, errors.New("kernels: the compiler is nil: see NewCompiler")
	case d == nil:
		return nil, errors.New("kernels: the device is nil")
	}
	if d.GoKernels {
		return make([]streams.Function, len(names)), nil
	}
	if c.load != nil {
		return c.load(d, p, names)
	}
	module, err := c.module(d.Real(), p)
	if err != nil {
		return nil, err
	}
	var found []streams.Function
	for _, name := range names {
		f, err := module.Function(name)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, nil
}

// module returns the program, compiled for the device and loaded on it.
func (c *compiled) module(d *streams.Device, p Program) (*streams.Module, error) {
	image, err := c.image(p, d.Arch)
	if err != nil {
		return nil, err
	}
	return c.modules.get(fmt.Sprintf("%p %s", d, p.key()), func() (*streams.Module, error) {
		module, err := d.LoadModule(image)
		if err != nil {
			return nil, c.refused(p, d.Arch, err)
		}
		return module, nil
	})
}

// LoadSteps is Load for a program that runs time steps, or exchanges between them, into which tests may inject
// faults.
func (c *Compiler) LoadSteps(d *streams.Device, p Program, names ...string) ([]streams.Function, error) {
	return c.Load(d, c.injectFault(d, p), names...)
}

// BeginSteps begins to compile programs for a later LoadSteps, concurrently.
func (c *Compiler) BeginSteps(d *streams.Device, programs ...Program) {
	if d.GoKernels || c.load != nil {
		return
	}
	for _, p := range programs {
		go c.Image(c.injectFault(d, p), d.Arch) // LoadSteps returns errors
	}
}

// Expect begins to compile a program that may be loaded soon, if this is the compiler of an Ahead. Otherwise it
// does nothing.
func (c *Compiler) Expect(d *streams.Device, p Program, names ...string) {
	if c.load != nil && !d.GoKernels {
		_, _ = c.load(d, p, names) // Load returns errors
	}
}

// injectFault returns the program with the faults that tests define for a device.
func (c *Compiler) injectFault(d *streams.Device, p Program) Program {
	if c.options.Disturb != nil {
		p.Defines = append(slices.Clone(p.Defines), c.options.Disturb(d.Real())...)
	}
	return p
}

// Image returns the program compiled for an architecture, such as "sm_90". Concurrent calls compile it once;
// errors are not kept.
func (c *Compiler) Image(p Program, arch string) ([]byte, error) {
	return c.image(p, arch)
}

func (c *compiled) image(p Program, arch string) ([]byte, error) {
	return c.images.get(arch+" "+p.key(), func() ([]byte, error) { return c.compile(p, arch) })
}

// Compiled returns how many programs the compiler has begun and finished compiling, without those from the cache.
func (c *Compiler) Compiled() (begun, done int) {
	d := c.done.Load() // read first: it never exceeds begun
	return int(c.begun.Load()), int(d)
}

// Remember returns an earlier result of measure for the kind and key, from this process or from the cache; known
// reports that. Otherwise it calls measure. A result from the cache counts only if it is valid. Calls on one
// compiler run one after the other, so that equal devices are measured once.
func Remember[T any](
	c *Compiler, kind, key string, valid func(T) bool, measure func() (T, error),
) (value T, known bool, err error) {
	c.remembered.mu.Lock()
	defer c.remembered.mu.Unlock()
	if value, known := c.remembered.values[[2]string{kind, key}].(T); known {
		return value, true, nil
	}
	store := cache.Remember(c.cache, kind, key, valid)
	if value, err = store.Get(); err == nil {
		known = true
	} else if value, err = measure(); err != nil {
		return value, false, err
	} else {
		_ = store.Put(value) // if that fails, it is measured again later
	}
	if len(c.remembered.values) >= maxRemembered || c.remembered.values == nil {
		c.remembered.values = map[[2]string]any{} // the cache still has them
	}
	c.remembered.values[[2]string{kind, key}] = value
	return value, known, nil
}

// compile compiles the program, or reads it from the cache.
func (c *compiled) compile(p Program, arch string) ([]byte, error) {
	c.running.RLock()
	defer c.running.RUnlock()
	if err := c.open(); err != nil {
		return nil, err
	}
	text, err := p.source()
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	options, err := c.compileOptions(p, arch)
	if err != nil {
		return nil, err
	}
	entry := imageEntry(c.cache, text, options, "nvrtc "+c.version)
	if image, ok := readImage(entry); ok {
		return image, nil
	}
	c.begun.Add(1)
	result, err := c.nvrtc.Compile(text, options)
	c.done.Add(1)
	switch {
	case c.closed.Load():
		return nil, errClosed
	case err != nil:
		return nil, fmt.Errorf("kernels: compile %v for %s: %w", p, arch, notCompiled{err})
	}
	writeImage(entry, result.Image)
	return result.Image, nil
}

// refused adds the program and the compiler to the error of a module that a GPU did not load. A driver cannot read
// all images of a newer NVRTC. Errors of an unusable device are returned unchanged.
func (c *compiled) refused(p Program, arch string, err error) error {
	if e, ok := errors.AsType[*streams.Error](err); !ok || e.Fatal {
		return err
	}
	return fmt.Errorf("kernels: %w; %v was compiled by NVRTC %s for %s: "+
		"if the driver is older, set HALOX_NVRTC to an NVRTC not newer than the driver", err, p, c.version, arch)
}

// open loads NVRTC.
func (c *compiled) open() error {
	c.opening.Lock()
	defer c.opening.Unlock()
	switch {
	case c.closed.Load():
		return errClosed
	case c.nvrtc != nil:
		return nil
	}
	var err error
	if c.nvrtc, c.version, err = openNVRTC(c.options.NVRTC); err != nil {
		return fmt.Errorf("kernels cannot be compiled for this GPU: %w", err)
	}
	return nil
}

// openNVRTC finds and loads NVRTC, and returns its version.
func openNVRTC(override string) (c *nvrtc.Compiler, version string, err error) {
	path, _, err := nvrtc.Find(override)
	if err != nil {
		return nil, "", err
	}
	if c, err = nvrtc.Open(path); err != nil {
		return nil, "", err
	}
	major, minor, err := c.Version()
	if err != nil {
		return nil, "", errors.Join(err, c.Close())
	}
	return c, fmt.Sprintf("%d.%d", major, minor), nil
}

// compileOptions returns the options for NVRTC. A GPU newer than NVRTC gets PTX of the newest architecture
// supported by NVRTC, which the driver compiles.
func (c *compiled) compileOptions(p Program, arch string) ([]string, error) {
	target := arch
	known, err := c.nvrtc.SupportedArchs()
	if err != nil {
		return nil, err
	}
	want, err := source.Architecture(arch)
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	if !slices.Contains(known, want) {
		known = slices.DeleteFunc(slices.Clone(known), func(a int) bool { return a > want })
		if len(known) == 0 {
			return nil, fmt.Errorf("kernels: NVRTC does not support the architecture %s, which is too old", arch)
		}
		target = fmt.Sprintf("compute_%d", slices.Max(known))
	}
	options := source.Options(target, p.Defines...)
	if p.own != "" {
		options = append(options, "--pre-include="+callersHeader)
	}
	return options, nil
}

// once keeps created values by key. The first caller creates the value, and others wait for it. An error is
// returned to all waiters and is not kept. The zero value is empty.
type once[T any] struct {
	mu    sync.Mutex
	byKey map[string]*func() (T, error)
}

func (o *once[T]) get(key string, make func() (T, error)) (T, error) {
	o.mu.Lock()
	found := o.byKey[key]
	if found == nil {
		if o.byKey == nil {
			o.byKey = map[string]*func() (T, error){}
		}
		made := sync.OnceValues(make)
		found = &made
		o.byKey[key] = found
	}
	o.mu.Unlock()
	value, err := (*found)()
	if err != nil {
		o.mu.Lock()
		if o.byKey[key] == found {
			delete(o.byKey, key)
		}
		o.mu.Unlock()
	}
	return value, err
}
