package cuda_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
)

// TestStubHasTheSameAPI compares the signatures of the exported functions and
// methods in stub.go with those of the files that need cgo.
func TestStubHasTheSameAPI(t *testing.T) {
	if _, err := os.Stat("stub.go"); err != nil {
		t.Skip("SKIPPED: the sources are not here")
	}
	stub, binding := map[string]bool{}, map[string]bool{}
	for _, name := range sources(t) {
		text := test.Must(os.ReadFile(name))(t)
		switch {
		case name == "stub.go":
			signatures(t, stub, name, text)
		case strings.HasPrefix(string(text), "//go:build linux && cgo\n"):
			signatures(t, binding, name, text)
		}
	}
	if len(binding) < 40 {
		t.Fatalf("only %d functions found", len(binding))
	}
	if !maps.Equal(stub, binding) {
		t.Errorf("stub alone: %v\nbinding alone: %v", without(stub, binding), without(binding, stub))
	}
}

func sources(t *testing.T) (names []string) {
	t.Helper()
	entries := test.Must(os.ReadDir("."))(t)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			names = append(names, e.Name())
		}
	}
	return names
}

func signatures(t *testing.T, into map[string]bool, name string, text []byte) {
	t.Helper()
	file := test.Must(parser.ParseFile(token.NewFileSet(), name, text, 0))(t)
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.IsExported() {
			into[signature(f)] = true
		}
	}
}

// signature is the receiver, name, parameter and result types.
func signature(f *ast.FuncDecl) string {
	lists := []*ast.FieldList{f.Recv, f.Type.Params, f.Type.Results}
	out := f.Name.Name
	for _, list := range lists {
		out += "("
		if list != nil {
			for _, field := range list.List {
				out += strings.Repeat(types.ExprString(field.Type)+",", max(1, len(field.Names)))
			}
		}
		out += ")"
	}
	return out
}

func without(a, b map[string]bool) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for k := range a {
			if !b[k] && !yield(k) {
				return
			}
		}
	})
}
