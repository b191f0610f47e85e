package rooms

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

// public lists by package what stays exported though nothing here uses it, "*" for all.
var public = map[string][]string{
	// MPI's type constructors, and what a type and a layout tell of themselves. Bindings have the
	// driver's names.
	"halo/datatype":  {"*"},
	"internal/cuda":  {"*"},
	"internal/nvrtc": {"*"},
	"internal/mpi":   {"*"},
	"internal/nccl":  {"*"},

	// To check user-defined trees.
	"kernels/pack": {"TreeTable.Primitive"},

	// A user's own streams, memory and traces.
	"streams": {"Device.NewTimedEvent", "Device.WrapStream", "Kernel.Name", "Window.Steps", "Work.Communicates"},

	// What goes with types that are used: to drive, to ask and to read them.
	"halo": {
		"Accumulator.Start", "Accumulator.Wait", "LinkModel",
		"Placement.Split", "WideHalo.Region",
	},
	"halo/boundary":  {"Ghosts.SetOn"},
	"halo/packing":   {"Transfer.Path"},
	"results":        {"Row.Has"},
	"results/field":  {"Writer.Abort", "Writer.Write"},
	"results/output": {"Run.Chunks"}, // for new formats
	"results/plot":   {"Panels"},
	"results/trace":  {"Trace.Hidden", "Trace.Write"},
	"solvers":        {"BoundaryKind", "Solver.Field", "Solver.Read"},
	"solvers/scheme": {"Runner.Placement", "Runner.Boxes", "Step.Reductions"},
	"stencil":        {"ParseError", "StarWeights.Stencil"},

	// The words of a config, and its schema.
	"configs": {"Boundary.Face", "Cells", "Coefficient.Number", "Grid.Points", "Problems", "Run.Dims", "Run.Equation",
		"Run.Periodic", "Run.Spacing", "SolverEquation", "SolverHeat"},
}

// Exported is what a user needs: another package, an example, a page or an Example uses it.
// Fields are not looked at, nor methods of interfaces.
func TestExportedIsUsed(t *testing.T) {
	testdevices.InTurn(t, 0, 4)
	packages, exports := list(t)
	l := newLoader(exports)
	used, byTests := pages(t), map[string]bool{}
	for _, p := range packages {
		l.addUses(t, p, used, byTests)
	}
	found := map[string][]string{}
	for _, p := range packages {
		for _, name := range l.exported(t, p) {
			byTest := (isInternal(p.name) || !l.imported[p.name]) && byTests[p.name+"."+name]
			if !used[p.name+"."+name] && !used[name] && !byTest {
				found[p.name] = append(found[p.name], name)
			}
		}
		for _, name := range public[p.name] {
			if name != "*" && !slices.Contains(found[p.name], name) {
				t.Errorf("%s: %s is used, or is not there: take it out of the lists", p.name, name)
			}
		}
		found[p.name] = slices.DeleteFunc(found[p.name], func(name string) bool {
			return slices.Contains(public[p.name], name) || slices.Contains(public[p.name], "*")
		})
	}
	for _, p := range slices.Sorted(maps.Keys(found)) {
		if len(found[p]) == 0 {
			continue
		}
		t.Errorf("%s exports what nothing uses: unexport or delete %s", p, strings.Join(found[p], ", "))
	}
}

// isInternal reports whether a package is for others of this module alone: their tests count.
func isInternal(pkg string) bool { return slices.Contains(strings.Split(pkg, "/"), "internal") }

// pages returns the words of all pages.
func pages(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	files, err := filepath.Glob("../../docs/*/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pages: %v", len(files), err)
	}
	for _, file := range append(files, "../../README.md") {
		text := test.Must(os.ReadFile(file))(t)
		for _, word := range regexp.MustCompile(`[A-Z]\w*(\.[A-Z]\w*)?`).FindAllString(string(text), -1) {
			words[word] = true
			if _, method, ok := strings.Cut(word, "."); ok {
				words[method] = true
			}
		}
	}
	return words
}

// loader has all packages in one universe of types.
type loader struct {
	fset       *token.FileSet
	importer   types.Importer
	interfaces []*types.Interface // with methods, of all packages
	imported   map[string]bool    // packages that more than tests import
}

func newLoader(exports map[string]string) *loader {
	fset := token.NewFileSet()
	l := &loader{fset: fset, importer: importer.ForCompiler(fset, "gc", open(exports)), imported: map[string]bool{}}
	for path := range exports {
		pkg, err := l.importer.Import(path)
		if err != nil {
			continue // of C
		}
		l.addInterfaces(pkg)
	}
	l.interfaces = append(l.interfaces, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
	return l
}

func (l *loader) addInterfaces(pkg *types.Package) {
	for _, name := range pkg.Scope().Names() {
		if i, ok := pkg.Scope().Lookup(name).Type().Underlying().(*types.Interface); ok && i.NumMethods() > 0 {
			l.interfaces = append(l.interfaces, i)
		}
	}
}

// exported returns the identifiers that a package exports: F, T and T.Method. A type that another
// declaration names is used with it, and constants of a type are used as one.
func (l *loader) exported(t *testing.T, p listed) (names []string) {
	t.Helper()
	pkg, err := l.importer.Import(module + p.name)
	if err != nil || pkg.Name() == "main" {
		return nil
	}
	said := mentioned(pkg)
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		if _, isConst := object.(*types.Const); !said[object] && !(isConst && ownType(object) != nil) {
			names = append(names, name)
		}
		named, ok := object.Type().(*types.Named)
		if _, isType := object.(*types.TypeName); !ok || !isType {
			continue
		}
		for m := range named.Methods() {
			if m.Exported() && !l.implements(named, m.Name()) {
				names = append(names, name+"."+m.Name())
			}
		}
	}
	return names
}

// ownType returns the type of an object where its package declares that, nil where it does not.
func ownType(o types.Object) types.Object {
	if named, ok := o.Type().(*types.Named); ok && named.Obj().Pkg() == o.Pkg() {
		return named.Obj()
	}
	return nil
}

// mentioned returns the types that exported declarations of their package name: functions, methods,
// fields, variables and constants.
func mentioned(pkg *types.Package) map[types.Object]bool {
	said := map[types.Object]bool{}
	var visit func(t types.Type)
	visit = func(t types.Type) {
		switch t := t.(type) {
		case *types.Named:
			if t.Obj().Pkg() == pkg {
				said[t.Obj()] = true
			}
			for a := range t.TypeArgs().Types() {
				visit(a)
			}
		case *types.Map:
			visit(t.Key())
			visit(t.Elem())
		case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
			visit(t.Elem())
		case *types.Signature:
			visit(t.Params())
			visit(t.Results())
		case *types.Tuple:
			for v := range t.Variables() {
				visit(v.Type())
			}
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					visit(f.Type())
				}
			}
		case *types.Interface:
			for m := range t.Methods() {
				visit(m.Type())
			}
		}
	}
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		named, ok := object.Type().(*types.Named)
		if _, isType := object.(*types.TypeName); !ok || !isType {
			visit(object.Type())
			continue
		}
		visit(named.Underlying())
		for m := range named.Methods() {
			if m.Exported() {
				visit(m.Type())
			}
		}
	}
	return said
}

// implements reports whether a method is one by which the type has an interface.
func (l *loader) implements(named *types.Named, method string) bool {
	if slices.Contains([]string{"Unwrap", "Is", "As"}, method) {
		return true // package errors asks for them
	}
	return slices.ContainsFunc(l.interfaces, func(i *types.Interface) bool {
		has := false
		for m := range i.Methods() {
			has = has || m.Name() == method
		}
		return has && (types.Implements(named, i) || types.Implements(types.NewPointer(named), i))
	})
}

// addUses adds what a package uses of others, and what its Examples use.
func (l *loader) addUses(t *testing.T, p listed, used, byTests map[string]bool) {
	t.Helper()
	tests := test.Must(filepath.Glob(filepath.Join(p.folder, "*_test.go")))(t)
	groups := map[string][]*ast.File{}
	for _, file := range append(slices.Clone(p.files), tests...) {
		f := test.Must(parser.ParseFile(l.fset, filepath.Join(p.folder, filepath.Base(file)), nil, parser.SkipObjectResolution))(t)
		groups[f.Name.Name] = append(groups[f.Name.Name], f)
	}
	for _, files := range groups {
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: l.importer, Error: func(error) {}, FakeImportC: true}
		pkg, _ := config.Check(module+p.name, l.fset, files, info)
		if pkg.Name() == "main" {
			l.addInterfaces(pkg)
		}
		for _, f := range files {
			isTest := strings.HasSuffix(l.fset.Position(f.Pos()).Filename, "_test.go")
			for _, d := range f.Decls {
				fn, isFunc := d.(*ast.FuncDecl)
				isExample := isFunc && strings.HasPrefix(fn.Name.Name, "Example")
				to := used
				if isTest && !isExample {
					to = byTests
				}
				ast.Inspect(d, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						if o := info.Uses[id]; o != nil && o.Pkg() != nil && (o.Pkg() != pkg || isExample) {
							to[key(o)] = true
							if name, own := strings.CutPrefix(o.Pkg().Path(), module); own && !isTest {
								l.imported[name] = true
							}
						}
					}
					return true
				})
			}
		}
	}
}

// key names an object as exported does, after its package.
func key(o types.Object) string {
	name := o.Name()
	if f, ok := o.(*types.Func); ok {
		f = f.Origin()
		if recv := f.Signature().Recv(); recv != nil {
			at := recv.Type()
			if p, ok := at.(*types.Pointer); ok {
				at = p.Elem()
			}
			if named, ok := at.(*types.Named); ok {
				name = named.Obj().Name() + "." + name
			}
		}
	}
	return strings.TrimPrefix(o.Pkg().Path(), module) + "." + name
}
