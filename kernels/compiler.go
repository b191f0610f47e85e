package kernels

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/streams"
)

// Options say where a Compiler finds what it needs.
type Options struct {
	NVRTC string // the NVRTC library; found by itself where empty
	Cache string // folder of compiled kernels; the user's cache where empty
}

// Compiler compiles the kernels for the GPU at hand and keeps what it
// compiled, on disk and, while it is open, on the devices. Host devices need no
// compiling. It may be used from any goroutine.
type Compiler struct {
	options Options
	mu      sync.Mutex
	nvrtc   *nvrtc.Compiler
	modules map[string]*streams.Module
}

// NewCompiler returns a compiler. NVRTC is looked for when a GPU first needs
// it; where it is missing, the error of that call says what to install and
// where it was looked for.
func NewCompiler(o Options) *Compiler {
	return &Compiler{options: o, modules: map[string]*streams.Module{}}
}

// load returns the named kernels of the program, compiled for the device.
func (c *Compiler) load(d *streams.Device, p Program, names ...string) ([]streams.Function, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprintf("%p %v", d, p)
	module := c.modules[key]
	if module == nil {
		image, err := c.image(p, d.Arch)
		if err != nil {
			return nil, err
		}
		if module, err = d.LoadModule(image); err != nil {
			return nil, err
		}
		c.modules[key] = module
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

// image returns the compiled program, from the cache where it has it.
func (c *Compiler) image(p Program, arch string) ([]byte, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	text, err := p.text()
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	options, err := c.compileOptions(p, arch)
	if err != nil {
		return nil, err
	}
	major, minor, err := c.nvrtc.Version()
	if err != nil {
		return nil, err
	}
	file := cacheFile(c.cacheDir(), text, options, fmt.Sprintf("nvrtc %d.%d", major, minor))
	if image, ok := readCache(file); ok {
		return image, nil
	}
	result, err := c.nvrtc.Compile(nvrtc.Source{Name: p.File, Text: text}, options)
	if err != nil {
		return nil, fmt.Errorf("kernels: compile %v for %s: %w", p, arch, err)
	}
	writeCache(file, result.Image)
	return result.Image, nil
}

// open loads NVRTC.
func (c *Compiler) open() error {
	if c.nvrtc != nil {
		return nil
	}
	path, _, err := nvrtc.Find(c.options.NVRTC)
	if err != nil {
		return fmt.Errorf("kernels: GPUs need NVRTC to compile for: %w", err)
	}
	if c.nvrtc, err = nvrtc.Open(path); err != nil {
		return fmt.Errorf("kernels: GPUs need NVRTC to compile for: %w", err)
	}
	return nil
}

// compileOptions returns NVRTC's options. A GPU newer than NVRTC gets PTX of
// the newest architecture that NVRTC knows, which the driver compiles.
func (c *Compiler) compileOptions(p Program, arch string) ([]string, error) {
	target := arch
	known, err := c.nvrtc.SupportedArchs()
	if err != nil {
		return nil, err
	}
	want, err := strconv.Atoi(strings.TrimPrefix(arch, "sm_"))
	if err != nil {
		return nil, fmt.Errorf("kernels: architecture %q", arch)
	}
	if !slices.Contains(known, want) {
		known = slices.DeleteFunc(slices.Clone(known), func(a int) bool { return a > want })
		if len(known) == 0 {
			return nil, fmt.Errorf("kernels: NVRTC cannot compile for %s: the GPU is too old for it", arch)
		}
		target = fmt.Sprintf("compute_%d", slices.Max(known))
	}
	options := []string{
		"--gpu-architecture=" + target, "--std=c++17", "--fmad=false", "-lineinfo", "-default-device",
	}
	for _, d := range p.Defines {
		options = append(options, "--define-macro="+d)
	}
	return options, nil
}

// cacheDir returns the folder of compiled kernels, or "" where there is none.
func (c *Compiler) cacheDir() string {
	if c.options.Cache != "" {
		return filepath.Join(c.options.Cache, "kernels")
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "halox", "kernels")
	}
	return ""
}
