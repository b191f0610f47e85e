package kernels_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// moves is a program of cu/.
var moves = kernels.Program{File: "move.cu"}

// Compiled programs are read from the cache, and a damaged entry is compiled again.
func TestCache(t *testing.T) {
	path := testdevices.NVRTC(t)
	dir := filepath.Join(t.TempDir(), "cache")
	compile := func() []byte {
		t.Helper()
		image := test.Must(kernels.NewCompiler(kernels.Options{NVRTC: path, Cache: dir}).Image(moves, "sm_90"))(t)
		return image
	}
	first := compile()
	files, _ := filepath.Glob(filepath.Join(dir, "kernels", "*"))
	if len(files) != 1 {
		t.Fatalf("cache: got %v", files)
	}
	whole, _ := os.ReadFile(files[0])
	if string(compile()) != string(first) {
		t.Error("the image from the cache must be identical")
	}
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)/2] ^= 1
	os.WriteFile(files[0], damaged, 0o644)
	if string(compile()) != string(first) {
		t.Error("a damaged entry must not be used")
	}
	if again, _ := os.ReadFile(files[0]); string(again) != string(whole) {
		t.Error("the damaged entry must be replaced")
	}
}

// Concurrent requests compile a program once.
func TestProgramIsCompiledOnce(t *testing.T) {
	c := testdevices.Compiler(t)
	device := &streams.Device{Info: streams.Info{Arch: "sm_90"}}
	programs := []kernels.Program{
		{File: "reflect.cu", Defines: []string{"REAL=float"}}, {File: "reflect.cu", Defines: []string{"REAL=double"}}, {File: "latency.cu"},
	}
	c.BeginSteps(device, programs...)
	images := make([][]byte, 12)
	var all errgroup.Group
	for i := range images {
		all.Go(func() (err error) {
			images[i], err = c.Image(programs[i%3], device.Arch)
			return err
		})
	}
	test.Check(t, all.Wait())
	for i, image := range images {
		if &image[0] != &images[i%3][0] {
			t.Errorf("program %v must be compiled once", programs[i%3])
		}
		if i < 3 && i > 0 && bytes.Equal(image, images[0]) {
			t.Errorf("programs %v and %v must differ", programs[0], programs[i])
		}
	}
}

// A GPU newer than the compiler gets PTX; one that is too old is an error.
func TestOtherArchitectures(t *testing.T) {
	c := testdevices.Compiler(t)
	if _, err := c.Image(moves, "sm_999"); err != nil {
		t.Errorf("a newer GPU: got %v", err)
	}
	for _, arch := range []string{"sm_20", "", "sm_x"} {
		if _, err := c.Image(moves, arch); err == nil {
			t.Errorf("architecture %q: got no error", arch)
		}
	}
}

// Every kernel first waits for earlier work, since it is started early.
func TestKernelsWaitForTheirPredecessors(t *testing.T) {
	files, err := fs.Glob(kernels.Sources, "cu/*.cu")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	head := regexp.MustCompile(`__global__[^{]*\{[\s\\]*([^;]*;)`)
	for _, file := range files {
		text := test.Must(kernels.Sources.ReadFile(file))(t)
		found := head.FindAllSubmatch(text, -1)
		if len(found) == 0 || len(found) != strings.Count(string(text), "__global__") {
			t.Errorf("%s: got %d kernels", file, len(found))
		}
		for _, f := range found {
			if string(f[1]) != "grid_dependency_wait();" {
				t.Errorf("%s: a kernel must begin with a wait, got %s", file, f[1])
			}
		}
	}
}
