package kernels

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/nvrtc/usages"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// findNVRTC returns a compiler, or skips the test where there is no NVRTC: not
// installed, and not in the project's own folder (make nvrtc).
func findNVRTC(t *testing.T) string {
	t.Helper()
	path, tried, err := nvrtc.Find(os.Getenv("HALOX_NVRTC"))
	if errors.Is(err, nvrtc.ErrNotFound) {
		path, _, err = nvrtc.Find(filepath.Join("..", ".nvrtc"))
	}
	if err != nil {
		t.Skipf("SKIPPED: no CUDA kernel was compiled: NVRTC is not installed; make nvrtc gets it. Looked in %v", tried)
	}
	return path
}

// Every variant of every kernel compiles for each generation of GPUs and keeps
// its variables in registers.
func TestEveryProgramCompilesWithoutSpills(t *testing.T) {
	path := findNVRTC(t)
	c := NewCompiler(Options{NVRTC: path, Cache: t.TempDir()})
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"sm_80", "sm_90", "sm_100"} {
		for _, p := range Programs() {
			t.Run(arch+"/"+p.String(), func(t *testing.T) {
				t.Parallel()
				source, err := p.source()
				if err != nil {
					t.Fatal(err)
				}
				options, err := c.compileOptions(p, arch)
				if err != nil {
					t.Fatal(err)
				}
				all, err := usages.Of(c.nvrtc, "../.cache/usages", source, options)
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range all {
					t.Logf("%s: %d registers", u.Name, u.Registers)
					if u.SpillStores+u.SpillLoads+u.StackFrame != 0 {
						t.Errorf("%s spills: %+v", u.Name, u)
					}
				}
			})
		}
	}
}

// What was compiled once is read from the cache, and a damaged entry is
// compiled again.
func TestCache(t *testing.T) {
	path := findNVRTC(t)
	dir := filepath.Join(t.TempDir(), "cache")
	compile := func() []byte {
		t.Helper()
		image, err := NewCompiler(Options{NVRTC: path, Cache: dir}).image(Programs()[0], "sm_90")
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	first := compile()
	files, _ := filepath.Glob(filepath.Join(dir, "kernels", "*"))
	if len(files) != 1 {
		t.Fatalf("cache holds %v", files)
	}
	whole, _ := os.ReadFile(files[0])
	if string(compile()) != string(first) {
		t.Error("the cache gave another image")
	}
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)/2] ^= 1
	os.WriteFile(files[0], damaged, 0o644)
	if string(compile()) != string(first) {
		t.Error("a damaged entry was used")
	}
	if again, _ := os.ReadFile(files[0]); string(again) != string(whole) {
		t.Error("the damaged entry was not replaced")
	}
}

// However many ask for a program at the same time, it is compiled once.
func TestAProgramIsCompiledOnce(t *testing.T) {
	c := NewCompiler(Options{NVRTC: findNVRTC(t), Cache: t.TempDir()})
	device := &streams.Device{Info: streams.Info{Arch: "sm_90"}}
	programs := []Program{reflectProgram(Float32), reflectProgram(Float64), latencyProgram()}
	c.begin(device, programs...)
	images := make([][]byte, 12)
	var all errgroup.Group
	for i := range images {
		all.Go(func() (err error) {
			images[i], err = c.image(programs[i%3], device.Arch)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, image := range images {
		if &image[0] != &images[i%3][0] {
			t.Errorf("program %v was compiled twice", programs[i%3])
		}
		if i < 3 && i > 0 && bytes.Equal(image, images[0]) {
			t.Errorf("programs %v and %v are the same", programs[0], programs[i])
		}
	}
}

// A GPU newer than the compiler gets PTX, one too old an error.
func TestOtherArchitectures(t *testing.T) {
	path := findNVRTC(t)
	c := NewCompiler(Options{NVRTC: path, Cache: t.TempDir()})
	if _, err := c.image(Programs()[0], "sm_999"); err != nil {
		t.Errorf("a GPU of the future: %v", err)
	}
	for _, arch := range []string{"sm_20", "", "sm_x"} {
		if _, err := c.image(Programs()[0], arch); err == nil {
			t.Errorf("compiled for %q", arch)
		}
	}
}

// Every kernel first waits for what is queued before it, since it is started early.
func TestEveryKernelWaitsForItsPredecessor(t *testing.T) {
	files, err := fs.Glob(sources, "cu/*.cu")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	head := regexp.MustCompile(`__global__[^{]*\{[\s\\]*([^;]*;)`)
	for _, file := range files {
		text, err := sources.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := head.FindAllSubmatch(text, -1)
		if len(found) == 0 || len(found) != strings.Count(string(text), "__global__") {
			t.Errorf("%s: %d kernels", file, len(found))
		}
		for _, f := range found {
			if string(f[1]) != "grid_dependency_wait();" {
				t.Errorf("%s: a kernel begins with %s", file, f[1])
			}
		}
	}
}

// The kernels of steps read nothing by the read-only path, which may keep what others have
// changed since.
func TestStepsReadWhatOthersWrite(t *testing.T) {
	c := NewCompiler(Options{NVRTC: findNVRTC(t), Cache: "../.cache/images"})
	for _, p := range Programs() {
		if p.File != "tiles.cu" {
			continue
		}
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			text, err := c.image(p, "sm_999") // PTX
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "ld.global.nc") {
				t.Error("it loads by the read-only path")
			}
		})
	}
}

// stencil.cuh, with which editors read the sources, is the one that Go writes for the 7-point star.
func TestStencilHeader(t *testing.T) {
	want := stencilSource(stencil.StarWeights{Dims: 3, Equal: true, Centre: 0.25, Axis: [3]float64{0.125, 0.125, 0.125}}.Stencil(), Float64)
	if got, err := sources.ReadFile("cu/" + stencilHeader); string(got) != want {
		t.Errorf("%v; cu/%s is to be:\n%s", err, stencilHeader, want)
	}
}

// Kernels that wait for other GPUs do so by acquires and releases, and by no fence, which would cost more.
func TestWaitsAcquireAndSignalsRelease(t *testing.T) {
	c := NewCompiler(Options{NVRTC: findNVRTC(t), Cache: t.TempDir()})
	star := everyStar()[0]
	tiles := tilesPrograms(star, Float64, &everyTiling(star, Float64)[0])
	for _, p := range []Program{tiles[0], directExchangeProgram()} {
		t.Run(p.File, func(t *testing.T) {
			text, err := c.image(p, "sm_999") // PTX
			if err != nil {
				t.Fatal(err)
			}
			for _, has := range []string{"ld.acquire.sys", "red.release.sys"} {
				if !strings.Contains(string(text), has) {
					t.Errorf("no %s", has)
				}
			}
			for _, hasNot := range []string{"membar", "fence."} {
				if strings.Contains(string(text), hasNot) {
					t.Errorf("%s in it", hasNot)
				}
			}
		})
	}
}
