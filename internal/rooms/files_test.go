package rooms

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
)

// notHeld lists the packages whose files may still refer to each other in a circle. All
// others are held, new ones too. A package leaves this list when its files have an order.
var notHeld = []string{
	"configs", // a section is one file, its type with how it is read; a run holds all sections, and some are read by others
	"streams", // a device makes memory, streams and events, which know their device, and its driver returns them

	// These import "C", which this test does not type-check.
	"internal/cuda",
	"internal/cuda/cudafake",
	"internal/nvrtc",
	"internal/dl",
	"internal/nccl",
}

// A file refers to another where it names what that one declares: at package level, a field or
// a method. The references among the files of a package form no cycle.
func TestFilesHaveAnOrder(t *testing.T) {
	packages, exports := list(t)
	for _, name := range notHeld {
		if !slices.ContainsFunc(packages, func(p listed) bool { return p.name == name }) {
			t.Errorf("there is no package %s", name)
		}
	}
	for _, p := range packages {
		if slices.Contains(notHeld, p.name) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if cycle := p.references(t, exports).cycle(); cycle != nil {
				t.Errorf("these files refer to each other in a circle:\n%s", strings.Join(cycle, "\n"))
			}
		})
	}
}

// A listed package is one that is looked at.
type listed struct {
	name, folder string
	files        []string // as this system and CGO_ENABLED build them
}

// list returns the packages of the module, and the files with the export data of all that
// they import.
func list(t *testing.T) (packages []listed, exports map[string]string) {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f",
		"{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{range .GoFiles}}{{.}} {{end}}{{range .CgoFiles}}{{.}} {{end}}", "./...")
	cmd.Dir = "../.."
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &complaint)
	}
	exports = map[string]string{}
	for line := range strings.Lines(string(out)) {
		part := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[part[0]] = part[1]
		if name, own := strings.CutPrefix(part[0], module); own {
			packages = append(packages, listed{name, part[2], strings.Fields(part[3])})
		}
	}
	if len(packages) < 20 {
		t.Fatalf("%d packages listed", len(packages))
	}
	return packages, exports
}

// open returns what opens the export data of a package.
func open(exports map[string]string) importer.Lookup {
	return func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	}
}

// references are the files of a package by name, each with those that it refers to and an
// identifier by which it does.
type references map[string]map[string]string

// references returns those among the files of the package.
func (p listed) references(t *testing.T, exports map[string]string) references {
	t.Helper()
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, file := range p.files {
		f := test.Must(parser.ParseFile(fset, filepath.Join(p.folder, file), nil, parser.SkipObjectResolution))(t)
		parsed = append(parsed, f)
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", open(exports))}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	pkg := test.Must(config.Check(module+p.name, fset, parsed, info))(t)
	fileOf := func(at token.Pos) string { return filepath.Base(fset.Position(at).Filename) }
	all := references{}
	for identifier, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		from, to := fileOf(identifier.Pos()), fileOf(object.Pos())
		if from == to {
			continue
		}
		if all[from] == nil {
			all[from] = map[string]string{}
		}
		if name := all[from][to]; name == "" || identifier.Name < name {
			all[from][to] = identifier.Name
		}
	}
	return all
}

// cycle returns a cycle, a line a reference; nil where there is none.
func (r references) cycle() (lines []string) {
	var path []string
	done := map[string]bool{}
	var visit func(file string) bool
	visit = func(file string) bool {
		if at := slices.Index(path, file); at >= 0 {
			path = append(path[at:], file)
			return true
		}
		if done[file] {
			return false
		}
		done[file], path = true, append(path, file)
		for _, to := range slices.Sorted(maps.Keys(r[file])) {
			if visit(to) {
				return true
			}
		}
		path = path[:len(path)-1]
		return false
	}
	for _, file := range slices.Sorted(maps.Keys(r)) {
		if visit(file) {
			for i, from := range path[:len(path)-1] {
				lines = append(lines, fmt.Sprintf("%s refers to %s by %s", from, path[i+1], r[from][path[i+1]]))
			}
			return lines
		}
	}
	return nil
}

func TestCycle(t *testing.T) {
	chain := references{"a.go": {"b.go": "B"}, "b.go": {"c.go": "C"}}
	if got := chain.cycle(); got != nil {
		t.Errorf("a chain: %q", got)
	}
	chain["c.go"] = map[string]string{"b.go": "b"}
	want := []string{"b.go refers to c.go by C", "c.go refers to b.go by b"}
	if got := chain.cycle(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
