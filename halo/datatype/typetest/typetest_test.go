package typetest_test

import (
	"testing"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/typetest"
	"github.com/halox/halox/internal/test"
)

// The types of some seeds include all constructors and all predefined types, some that are empty, overlap or
// go backwards, and lists and pieces of all ranks.
func TestTypesAreOfAllKinds(t *testing.T) {
	for name, of := range map[string]func(s typetest.Source) *datatype.Type{
		"odd":   func(s typetest.Source) *datatype.Type { return s.Type(t, 4) },
		"plain": func(s typetest.Source) *datatype.Type { return s.Plain(t, 4) },
	} {
		seen := map[any]int{}
		for seed := range uint64(1000) {
			typ := of(typetest.Seeded(seed))
			if again := of(typetest.Seeded(seed)); again.String() != typ.String() {
				t.Fatalf("%s, seed %d: %v, then %v", name, seed, typ, again)
			}
			note(t, seen, typ)
		}
		for c := datatype.Named; c <= datatype.ResizedCombiner; c++ {
			if seen[c] == 0 {
				t.Errorf("%s: no %v", name, c)
			}
		}
		for _, b := range []*datatype.Type{datatype.Byte, datatype.Uint16, datatype.Complex128} {
			if seen[b.Envelope().Basic] == 0 {
				t.Errorf("%s: no %v", name, b)
			}
		}
		for _, what := range []any{"empty", "overlaps", "backwards", "list", 0, 1, 2, 3, 4} {
			if seen[what] == 0 {
				t.Errorf("%s: none of %v", name, what)
			}
		}
	}
}

// note counts the parts of a type, and properties of its layout.
func note(t *testing.T, seen map[any]int, typ *datatype.Type) {
	t.Helper()
	parts(seen, typ)
	l := test.Must(datatype.Commit(typ, 1))(t)
	for what, is := range map[string]bool{"empty": l.Size() == 0, "overlaps": l.Overlaps(), "backwards": typ.TrueLB() < 0, "list": !l.Strided()} {
		if is {
			seen[what]++
		}
	}
	for _, p := range l.Pieces() {
		seen[p.Rank]++
	}
}

func parts(seen map[any]int, typ *datatype.Type) {
	e := typ.Envelope()
	seen[e.Combiner]++
	if e.Combiner == datatype.Named {
		seen[e.Basic]++
	}
	for _, child := range e.Types {
		parts(seen, child)
	}
}
