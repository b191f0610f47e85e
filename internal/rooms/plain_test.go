package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The packages that the Makefile keeps from the race detector, and from the tests without cgo, start no goroutine and bind no
// library, nor do their tests.
func TestPlainPackages(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^PLAIN := (.*)$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no PLAIN")
	}
	for _, name := range strings.Fields(string(list[1])) {
		files, err := filepath.Glob(filepath.Join("../..", name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no files: %v", name, err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if what := notPlain(parsed); what != "" {
				t.Errorf("%s has %s, and the Makefile calls %s plain", file, what, name)
			}
		}
	}
	for source, want := range map[string]string{
		"package a\nfunc f() { go f() }":                                       "a go statement",
		"package a\nfunc f(w G) { w.Go(f) }":                                   "a call of Go",
		"package a\nimport \"C\"":                                              `import "C"`,
		"package a\nimport \"github.com/halox/halox/internal/cuda\"":           "a binding",
		"//go:build cgo\n\npackage a":                                          "a build constraint",
		"package a\nimport \"strings\"\nfunc f() { strings.Fields(\"go f\") }": "",
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "a.go", source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if what := notPlain(parsed); what != want {
			t.Errorf("%q has %q, not %q", source, what, want)
		}
	}
}

// notPlain says what in a file starts a goroutine, or differs without cgo; nothing where there is none.
func notPlain(file *ast.File) (what string) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:build ") && regexp.MustCompile(`\b(cgo|race)\b`).MatchString(c.Text) {
				return "a build constraint"
			}
		}
	}
	bindings := regexp.MustCompile(`/internal/(cuda|nvrtc|mpi|nccl|cufft)"$`)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			if n.Path.Value == `"C"` {
				what = `import "C"`
			} else if bindings.MatchString(n.Path.Value) {
				what = "a binding"
			}
		case *ast.GoStmt:
			what = "a go statement"
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
				what = "a call of Go"
			}
		}
		return what == ""
	})
	return what
}
