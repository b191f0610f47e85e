// Package rooms tests the structure of the code: packages import only what the list
// below allows, so that imports point down and form no circle.
package rooms

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
)

const module = "github.com/halox/halox/"

// may lists for every room the rooms that it may import. A room is a folder with
// everything below it, except for folders that have their own entry here.
var may = map[string][]string{
	"domain":                        {},
	"stencil":                       {"domain"},
	"internal/cuda":                 {"internal/dl"},
	"internal/nvrtc":                {"internal/dl"},
	"internal/dl":                   {},
	"internal/guard":                {},
	"internal/mpi":                  {"internal/dl", "internal/poll"},
	"internal/nccl":                 {"internal/dl"},
	"internal/nccl/ncclfake":        {"internal/cuda/cudafake"},
	"internal/poll":                 {},
	"internal/host":                 {},
	"streams":                       {"internal/cuda", "internal/guard", "internal/host", "internal/poll"},
	"kernels":                       {"streams", "stencil", "domain", "internal/nvrtc", "internal/cache"},
	"kernels/flags":                 {"internal/poll", "kernels", "streams"},
	"kernels/pack":                  {"kernels", "kernels/flags", "streams", "domain"},
	"kernels/reduce":                {"kernels", "streams", "domain"},
	"kernels/step":                  {"kernels", "kernels/flags", "kernels/reduce", "streams", "stencil", "domain"},
	"kernels/sweep":                 {"kernels", "kernels/flags", "kernels/step", "streams", "stencil", "domain"},
	"kernels/temporal":              {"kernels", "kernels/flags", "kernels/reduce", "streams", "stencil", "domain"},
	"p2p":                           {"streams", "domain", "internal/cache"},
	"p2p/mpi":                       {"streams", "internal/host", "internal/mpi", "internal/nccl"},
	"halo":                          {"internal/guard", "internal/host", "halo/datatype", "halo/packing", "p2p", "p2p/mpi", "kernels", "kernels/pack", "kernels/reduce", "streams", "domain", "internal/cache"},
	"halo/datatype":                 {},
	"halo/packing":                  {"halo/datatype", "p2p", "kernels", "kernels/flags", "kernels/pack", "streams", "domain"},
	"halo/halotest":                 {"halo", "halo/datatype", "p2p", "kernels", "streams", "domain"},
	"halo/ranks":                    {"internal/host", "internal/poll", "kernels", "p2p", "p2p/mpi", "streams"},
	"halo/checkpoint":               {"halo", "p2p/mpi", "streams", "domain", "internal/files", "internal/zarr"},
	"halo/boundary":                 {"halo", "kernels", "kernels/pack", "streams", "domain"},
	"solvers/scheme":                {"internal/cache", "internal/guard", "internal/host", "halo", "halo/boundary", "halo/ranks", "p2p", "p2p/mpi", "kernels", "kernels/reduce", "kernels/sweep", "kernels/temporal", "stencil", "streams", "domain"},
	"solvers":                       {"solvers/scheme", "halo", "halo/boundary", "halo/checkpoint", "p2p", "kernels", "kernels/sweep", "stencil", "streams", "domain"},
	"configs":                       {"solvers", "solvers/scheme", "halo/boundary", "halo/checkpoint", "p2p", "p2p/mpi", "stencil", "streams", "kernels", "domain", "results/field", "results/output", "results/plot", "results/view"},
	"internal/measure":              {},
	"internal/forecast":             {"domain", "p2p", "results", "streams"},
	"internal/files":                {},
	"internal/vtk":                  {"domain", "internal/files"},
	"internal/zarr":                 {"domain", "internal/files"},
	"internal/interrupt":            {"internal/files"},
	"internal/command":              {"internal/interrupt", "streams"},
	"internal/drawing":              {"domain", "solvers", "configs", "results", "results/field", "results/plot", "results/trace", "results/view", "internal/bench", "internal/command", "internal/vtk", "internal/zarr"},
	"internal/progress":             {"kernels"},
	"internal/faults":               {"domain", "halo", "streams", "results", "internal/command", "internal/interrupt"},
	"internal/solve":                {"domain", "streams", "p2p", "p2p/mpi", "halo", "halo/checkpoint", "solvers", "solvers/scheme", "configs", "results", "results/output", "results/trace", "results/view", "internal/bench", "internal/cache", "internal/command", "internal/faults", "internal/interrupt", "internal/progress", "internal/series", "internal/tracing"},
	"internal/tracing":              {"p2p/mpi", "results/trace", "streams"},
	"internal/series":               {"domain", "halo", "internal/files", "internal/vtk", "internal/zarr", "p2p/mpi", "results", "results/field", "solvers/scheme", "streams"},
	"internal/plan":                 {"domain", "halo", "p2p", "p2p/mpi", "solvers", "solvers/scheme", "streams"},
	"internal/cache":                {"internal/files"},
	"internal/testmpi":              {"internal/cuda/cudafake", "p2p/mpi"},
	"internal/testnet":              {"internal/testmpi"},
	"internal/test":                 {},
	"internal/testdevices":          {"streams", "p2p", "kernels", "internal/nvrtc", "internal/cuda/cudafake"},
	"kernels/internal/kerneltest":   {"internal/test", "internal/testdevices", "internal/nvrtc", "internal/cuda/cudafake", "kernels", "stencil", "streams", "domain"},
	"internal/mutation":             {},
	"internal/rooms":                {},
	"internal/cuda/cudafake":        {"internal/cache"},
	"examples":                      {"solvers/scheme", "halo", "halo/boundary", "halo/datatype", "halo/packing", "halo/ranks", "p2p", "kernels", "kernels/sweep", "stencil", "streams", "domain"},
	"examples/internal/exampletest": {"examples", "internal/testdevices", "internal/nvrtc", "kernels", "halo", "p2p", "solvers/scheme", "streams"},
	"cmd":                           {"domain", "streams", "p2p", "p2p/mpi", "halo", "halo/checkpoint", "solvers", "solvers/scheme", "configs", "results", "results/plot", "internal/bench", "internal/drawing", "internal/faults", "internal/verify", "internal/forecast", "internal/plan", "internal/solve", "internal/cache", "internal/files", "internal/interrupt", "internal/command", "internal/progress"},

	// What benchmarks measure, and their runner: all below.
	"internal/verify": {"domain", "streams", "kernels", "p2p", "p2p/mpi", "halo", "halo/halotest", "halo/ranks", "solvers", "solvers/scheme"},
	"internal/bench":  {"domain", "stencil", "streams", "kernels", "kernels/flags", "kernels/pack", "kernels/sweep", "p2p", "p2p/mpi", "halo", "halo/checkpoint", "halo/datatype", "halo/packing", "halo/ranks", "solvers", "solvers/scheme", "results", "results/plot", "internal/measure", "internal/files"},

	"results":                      {"results/internal/wording", "internal/measure", "internal/files"},
	"results/trace":                {"results", "results/internal/wording", "internal/files"},
	"results/field":                {"domain", "internal/files"},
	"results/output":               {"results", "results/field", "results/plot", "results/view", "domain", "internal/files", "internal/vtk"},
	"results/view":                 {"results/plot", "domain", "internal/files"},
	"results/plot":                 {"results", "results/trace", "results/internal/wording", "internal/measure", "internal/files"},
	"results/internal/wording":     {},
	"results/internal/resultstest": {"results", "results/trace", "internal/measure"},
}

// mayUseC lists the rooms that import "C".
var mayUseC = []string{"internal/cuda", "internal/dl", "internal/nvrtc", "internal/nccl", "internal/cuda/cudafake"}

// roomOf returns the room that a package of the module belongs to: the
// longest name in may that it lies under.
func roomOf(pkg string) string {
	room := ""
	for name := range may {
		if (pkg == name || strings.HasPrefix(pkg, name+"/")) && len(name) > len(room) {
			room = name
		}
	}
	return room
}

func TestArrows(t *testing.T) {
	eachFile(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			checkFile(t, path)
		}
	})
}

// eachFile calls f for each Go file of the module.
func eachFile(t *testing.T, f func(path string)) {
	t.Helper()
	files := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (strings.HasPrefix(name, ".") && len(name) > 2 || name == "testdata" || name == "bundle") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			files++
			f(path)
		}
		return nil
	})
	if err != nil || files < 50 {
		t.Fatalf("%d files looked at: %v", files, err)
	}
}

// What a test skips it skips with a word that can be looked for, and says why.
func TestSkipsSaySo(t *testing.T) {
	skip, reason := regexp.MustCompile(`[.]Skip(f|Now)?[(].*`), regexp.MustCompile(`^[.]Skipf?[(]"SKIPPED: (\S|", )`)
	found := 0
	eachFile(t, func(path string) {
		text := test.Must(os.ReadFile(path))(t)
		for _, call := range skip.FindAllString(string(text), -1) {
			if found++; !reason.MatchString(call) {
				t.Errorf("%s: %s does not begin with SKIPPED: and a reason", path, call)
			}
		}
	})
	if found == 0 {
		t.Error("no test skips anything")
	}
}

// Tests that scripts, pages and other tests name exist.
func TestNamedTestsExist(t *testing.T) {
	exists, names := map[string]bool{"TestGoFiles": true}, map[string]string{} // go list has a field of that name
	eachFile(t, func(path string) {
		text := string(test.Must(os.ReadFile(path))(t))
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(text, -1) {
			exists[m[1]] = true
		}
		for _, m := range regexp.MustCompile("\"-test.run(?:\", \"|=)\\^?(Test\\w+)").FindAllStringSubmatch(text, -1) {
			names[m[1]] = path
		}
	})
	for _, pattern := range []string{"Makefile", ".ci/run", "*.md", "scripts/*", "docs/dev/*.md"} {
		for _, path := range test.Must(filepath.Glob(filepath.Join("../..", pattern)))(t) {
			for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(test.Must(os.ReadFile(path))(t)), -1) {
				names[name] = path
			}
		}
	}
	for name, path := range names {
		if !exists[name] {
			t.Errorf("%s names %s, which does not exist", path, name)
		}
	}
	if len(names) < 10 {
		t.Errorf("only %d tests are named", len(names))
	}
}

func checkFile(t *testing.T, path string) {
	folder := test.Must(filepath.Rel("../..", filepath.Dir(path)))(t)
	room := roomOf(filepath.ToSlash(folder))
	if room == "" {
		t.Errorf("%s lies in no room", path)
		return
	}
	for _, i := range parsedFile(t, path).Imports {
		name := strings.Trim(i.Path.Value, `"`)
		if name == "C" && !slices.Contains(mayUseC, room) {
			t.Errorf("%s imports C", path)
		}
		if other, ok := strings.CutPrefix(name, module); ok && roomOf(other) != room && !slices.Contains(may[room], roomOf(other)) {
			t.Errorf("%s: room %s may not import %s", path, room, other)
		}
	}
}
