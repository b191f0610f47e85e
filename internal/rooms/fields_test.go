package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
)

// documented lists the folders whose exported struct fields all have a comment.
// A folder includes its subfolders.
var documented = []string{"domain", "stencil", "streams", "p2p", "kernels", "halo", "solvers", "configs", "results"}

// Every exported field of an exported struct has a doc comment or a line comment. Internal packages and
// programs are exempt.
func TestFieldsHaveComments(t *testing.T) {
	eachFile(t, func(path string) {
		folder := filepath.ToSlash(test.Must(filepath.Rel("../..", filepath.Dir(path)))(t))
		if strings.HasSuffix(path, "_test.go") || isInternal(folder) ||
			!slices.ContainsFunc(documented, func(d string) bool { return strings.HasPrefix(folder+"/", d+"/") }) {
			return
		}
		if file := parsedFile(t, path); file.Name.Name != "main" {
			for _, field := range bareFields(file) {
				t.Errorf("%s: field %s must have a comment with its meaning, unit and default", path, field)
			}
		}
	})
	source := "package a\ntype T struct {\n\tA, B int\n\tC int // has one\n\t// has one too\n\tD int\n\te int\n\tF\n}\ntype u struct{ X int }\n"
	parsed := test.Must(parser.ParseFile(token.NewFileSet(), "a.go", source, parser.ParseComments))(t)
	if got, want := bareFields(parsed), []string{"T.A", "T.B"}; !slices.Equal(got, want) {
		t.Errorf("bareFields: got %v, want %v", got, want)
	}
}

// bareFields returns the exported fields of exported structs that have no comment. Embedded fields are exempt.
func bareFields(file *ast.File) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Name.IsExported() {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() && field.Doc == nil && field.Comment == nil {
						names = append(names, spec.Name.Name+"."+name.Name)
					}
				}
			}
		}
		return true
	})
	return names
}
