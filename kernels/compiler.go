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

// Options say where a Compiler finds what it needs.
type Options struct {
	NVRTC string // the NVRTC library; found by itself where empty
	Cache string // folder of the cache; where empty the one that HALOX_CACHE names, else the user's

	// Disturb is for tests: it returns what to define in the programs by which a device
	// makes whole steps or exchanges, see cu/faults.cuh.
	Disturb func(d *streams.Device) []string
}

// ErrNotCompiled says that the compiler refuses a program.
var ErrNotCompiled = errors.New("kernels: the program does not compile")

// notCompiled is what the compiler says, which is ErrNotCompiled too.
type notCompiled struct{ error }

func (e notCompiled) Unwrap() []error { return []error{ErrNotCompiled, e.error} }

// Compiler compiles the kernels for the GPU at hand and keeps what it
// compiled, in memory, on disk and, while they are open, on the devices. Devices
// that run Go need no compiling. It may be used from any goroutine.
type Compiler struct {
	*compiled
	load loader // in place of Load, of the compiler of an Ahead
}

type loader func(d *streams.Device, p Program, names []string) ([]streams.Function, error)

// compiled is what a compiler shares with its Aheads.
type compiled struct {
	options    Options
	cache      cache.Folder
	remembered remembered

	opening sync.Mutex
	nvrtc   *nvrtc.Compiler
	version string // of nvrtc

	images      once[[]byte]          // by program and generation
	modules     once[*streams.Module] // by program and device
	begun, done atomic.Int64          // programs that were compiled
	cores       chan struct{}         // that Aheads compile on
}

// NewCompiler returns a compiler. NVRTC is looked for when a GPU first needs
// it; where it is missing, the error of that call says what to install and
// where it was looked for.
func NewCompiler(o Options) *Compiler {
	return &Compiler{compiled: &compiled{
		options: o, cache: cache.At(o.Cache).Below("kernels"),
		cores: make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
	}}
}

// CompilerFromEnv returns a compiler that looks for NVRTC where the variable HALOX_NVRTC
// says, if it is set.
func CompilerFromEnv() *Compiler {
	return NewCompiler(Options{NVRTC: os.Getenv("HALOX_NVRTC")})
}

// Prepare looks for NVRTC and loads it in the background, while there is other work. What is wrong the first
// Load says that needs it.
func (c *Compiler) Prepare() { go c.open() }

// Load returns the named kernels of the program, compiled for the device and loaded on it. What
// was compiled once is kept, on disk too. On a device that runs Go they are nil, and nothing is
// compiled: its launches have a Go form. For one of a dry run they are loaded on the device itself.
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

// LoadSteps is Load of a program that makes time steps, or exchanges between them, into which tests may have faults
// injected.
func (c *Compiler) LoadSteps(d *streams.Device, p Program, names ...string) ([]streams.Function, error) {
	return c.Load(d, c.injectFault(d, p), names...)
}

// BeginSteps has programs compiled that LoadSteps will load soon, all at the same time.
func (c *Compiler) BeginSteps(d *streams.Device, programs ...Program) {
	if d.GoKernels || c.load != nil {
		return
	}
	for _, p := range programs {
		go c.Image(c.injectFault(d, p), d.Arch) // what is wrong LoadSteps says
	}
}

// Expect has a program compiled that may be loaded soon, where this is the compiler of an Ahead, and does nothing
// otherwise.
func (c *Compiler) Expect(d *streams.Device, p Program, names ...string) {
	if c.load != nil && !d.GoKernels {
		_, _ = c.load(d, p, names) // what is wrong Load says
	}
}

// injectFault returns the program of steps as tests want it on a device.
func (c *Compiler) injectFault(d *streams.Device, p Program) Program {
	if c.options.Disturb != nil {
		p.Defines = append(slices.Clone(p.Defines), c.options.Disturb(d.Real())...)
	}
	return p
}

// Image returns the program compiled for an architecture, as "sm_90". Whoever asks for it first
// compiles it; an error is not kept.
func (c *Compiler) Image(p Program, arch string) ([]byte, error) {
	return c.image(p, arch)
}

func (c *compiled) image(p Program, arch string) ([]byte, error) {
	return c.images.get(arch+" "+p.key(), func() ([]byte, error) { return c.compile(p, arch) })
}

// Compiled returns how many programs the compiler has begun to compile so far, and how many of
// them it is done with. What the cache has does not count.
func (c *Compiler) Compiled() (begun, done int) {
	d := c.done.Load() // first: it is never more than begun
	return int(c.begun.Load()), int(d)
}

// Remember returns what measure returned for the kind and the key before, in this process or, by the compiler's cache,
// in another; known says that. Otherwise it calls measure. What the cache holds counts only if it is valid. Calls on
// one compiler come one after the other, so that devices of one kind are measured once.
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
		_ = store.Put(value) // otherwise it is measured again
	}
	if c.remembered.values == nil {
		c.remembered.values = map[[2]string]any{}
	}
	c.remembered.values[[2]string{kind, key}] = value
	return value, known, nil
}

// compile compiles the program, or takes it from the cache where it has it.
func (c *compiled) compile(p Program, arch string) ([]byte, error) {
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
	if err != nil {
		return nil, fmt.Errorf("kernels: compile %v for %s: %w", p, arch, notCompiled{err})
	}
	writeImage(entry, result.Image)
	return result.Image, nil
}

// refused adds to the error of a module that a GPU would not load what made it.
// A driver cannot read all that a newer NVRTC writes. To a dead device it is
// all the same.
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
	if c.nvrtc != nil {
		return nil
	}
	var err error
	if c.nvrtc, c.version, err = openNVRTC(c.options.NVRTC); err != nil {
		return fmt.Errorf("kernels cannot be compiled for this GPU: %w", err)
	}
	return nil
}

// openNVRTC finds and loads NVRTC, and returns its version too.
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

// compileOptions returns NVRTC's options. A GPU newer than NVRTC gets PTX of
// the newest architecture that NVRTC knows, which the driver compiles.
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
			return nil, fmt.Errorf("kernels: NVRTC cannot compile for %s: the GPU is too old for it", arch)
		}
		target = fmt.Sprintf("compute_%d", slices.Max(known))
	}
	options := source.Options(target, p.Defines...)
	if p.own != "" {
		options = append(options, "--pre-include="+callersHeader)
	}
	return options, nil
}

// once keeps what is made, by key. The first who asks makes it, and others wait for that; an error
// is for all who wait, and is not kept. The zero value is empty.
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
