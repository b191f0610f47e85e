package kernels_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
)

// Each source with kernels belongs to one package, whose tests run all its kernels on the CPU: its TestMain names
// the source.
func TestEachSourceHasOnePackage(t *testing.T) {
	mains, err := filepath.Glob("*/main_test.go")
	if err != nil || len(mains) == 0 {
		t.Skip("SKIPPED: the sources of tests are missing: ", err)
	}
	mains = append(mains, filepath.Join("..", "solvers", "main_test.go")) // steps of scheme ranks are prepared there
	var run []string
	for _, main := range mains {
		text := test.Must(os.ReadFile(main))(t)
		for _, pattern := range regexp.MustCompile(`"\.\./(?:kernels/)?(cu/[^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			files := test.Must(filepath.Glob(pattern[1]))(t)
			run = append(run, files...)
		}
	}
	slices.Sort(run)
	if all, err := filepath.Glob("cu/*.cu"); err != nil || !slices.Equal(run, all) {
		t.Errorf("tests run %v\nwant      %v: %v", run, all, err)
	}
}

// Every file compiles as C++ by itself, with the flags for editors: it includes what it needs.
func TestEachFileCompilesByItself(t *testing.T) {
	testdevices.Once(t)
	compiler, flags := kerneltest.CPP(t, "cu")
	files, err := filepath.Glob("cu/*.cu*")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for i, file := range files {
		if !testdevices.Turn(i, 2, 1) {
			continue
		}
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command(compiler, append(flags, "-w", file)...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A struct in Go and C++.
type mirrored struct {
	address      uint64
	lastCount    int32
	inner        [2]mirroredPart
	mirroredPart `cu:"inline"`
	named        uint16 `cu:"other"`
	_            uint16
}

type mirroredPart struct{ low, high int16 }

const mirroredSource = `
struct Part { short low, high; };
struct Mirrored { void *address; int last_count; Part inner[2]; short low, high, other, unused; };
`

func TestLayoutSource(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		says           string // of the compiler; "" if the layouts agree
	}{
		{"equal", "", "", ""},
		{"a member of another size", "int last_count", "long long last_count", "as in Go"},
		{"two members swapped", "low, high, other", "high, low, other", "as in Go"},
		{"an additional member", "unused;", "unused; long long more;", "as in Go"},
		{"another name", "last_count", "count", "last_count"},
		{"an inner struct changed", "Part { short low, high", "Part { short high, low", "as in Go"},
	} {
		t.Run(c.name, func(t *testing.T) {
			value := mirrored{address: 1, lastCount: 1, inner: [2]mirroredPart{{low: 1, high: 1}}, mirroredPart: mirroredPart{}, named: 1}
			mirrors := []kernels.Mirror{{Name: "Mirrored", Value: value}, {Name: "sizeof(Part)", Value: 4}}
			text := strings.Replace(mirroredSource, c.old, c.new, 1) + kernels.LayoutSource("mirrored.cu", mirrors)
			checkLayout(t, text, c.says, compileAsC)
			checkLayout(t, text, c.says, compileByNVRTC)
		})
	}
}

func checkLayout(t *testing.T, text, says string, compile func(t *testing.T, text string) (string, error)) {
	t.Helper()
	log, err := compile(t, text)
	if (err != nil) != (says != "") || !strings.Contains(log, says) {
		t.Errorf("got %v, want %q:\n%s", err, says, log)
	}
}

func compileAsC(t *testing.T, text string) (string, error) {
	compiler, err := testdevices.CPlusPlus()
	if err != nil {
		t.Skip("SKIPPED: no C++ compiler: ", err)
	}
	file := filepath.Join(t.TempDir(), "a.cc")
	test.Check(t, os.WriteFile(file, []byte(text), 0o644))
	out, err := exec.Command(compiler, "-std=c++17", "-fsyntax-only", file).CombinedOutput()
	return string(out), err
}

func compileByNVRTC(t *testing.T, text string) (string, error) {
	c := test.Must(nvrtc.Open(testdevices.NVRTC(t)))(t)
	_, err := c.Compile(nvrtc.Source{Name: "a.cu", Text: text}, []string{"--gpu-architecture=compute_90", "--std=c++17"})
	if err != nil {
		return err.Error(), err
	}
	return "", nil
}

// Headers for users have the layout of their Go types.
func TestLayoutForCallers(t *testing.T) {
	const file = "halox.cuh"
	text := test.Must(kernels.Sources.ReadFile("cu/" + file))(t)
	type points struct {
		arg float64
		box kernels.PointsBoxes
	}
	layout := kernels.LayoutSource(file, []kernels.Mirror{
		{Name: "View<double>", Value: kernels.View{}}, {Name: "Box", Value: kernels.Box{}}, {Name: "Points<double>", Value: points{0, kernels.PointsBoxes{}}},
	})
	checkLayout(t, string(text)+layout, "", compileByNVRTC)
}
