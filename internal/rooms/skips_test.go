package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// What a test skips it skips with a word that can be looked for, and says why.
func TestSkipsSaySo(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || method.Sel.Name != "Skip" && method.Sel.Name != "Skipf" && method.Sel.Name != "SkipNow" {
				return true
			}
			found++
			why := ""
			if len(call.Args) > 0 {
				if text, ok := call.Args[0].(*ast.BasicLit); ok {
					why = text.Value
				}
			}
			if !strings.HasPrefix(why, `"SKIPPED: `) || len(call.Args) == 1 && why == `"SKIPPED: "` {
				t.Errorf("%v does not begin with SKIPPED: and a reason", files.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d found, %v", found, err)
	}
}
