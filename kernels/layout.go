package kernels

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// Mirror says that a struct of the CUDA sources lies in memory as a Go type does, or that a constant
// there has the value of a Go constant. A struct has the members that the Go type has: member next_word
// for field nextWord, or another name by the tag cu. The fields of a struct with the tag cu:"inline"
// are members of the outer one.
type Mirror struct {
	Name  string // in C++
	Value any    // of the Go type, or that as a reflect.Type, or the constant
}

// memberAt asserts the place and the size of a member. NVRTC has no __builtin_offsetof.
const memberAt = `#ifdef __CUDACC_RTC__
#define OFFSET_OF(type, member) __INTADDR__(&((type *)0)->member)
#else
#define OFFSET_OF(type, member) __builtin_offsetof(type, member)
#endif
#define MEMBER_AT(type, member, offset, size) \
	static_assert((unsigned long long)OFFSET_OF(type, member) == offset && sizeof(((type *)0)->member) == size, "as in Go")
`

// layoutSource is C++ that holds a file to all its mirrors, at compile time.
func layoutSource(file string, mirrors []Mirror) string {
	if len(mirrors) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s#line 1 \"the layout of %s in Go\"\n", memberAt, file)
	for _, m := range mirrors {
		if v := reflect.ValueOf(m.Value); v.CanInt() {
			fmt.Fprintf(&b, "static_assert((%s) == %d, \"as in Go\");\n", m.Name, v.Int())
			continue
		}
		t, ok := m.Value.(reflect.Type)
		if !ok {
			t = reflect.TypeOf(m.Value)
		}
		fmt.Fprintf(&b, "static_assert(sizeof(%s) == %d, \"as in Go\");\n", m.Name, t.Size())
		writeMembers(&b, m.Name, "", 0, t)
	}
	return b.String()
}

// writeMembers asserts the places and the sizes of all members that a Go type has. The path is that of a
// member of the C++ struct, whose offset is given.
func writeMembers(b *strings.Builder, name, path string, offset uintptr, t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			member, inline := memberOf(f)
			switch {
			case member == "_":
			case inline:
				writeMembers(b, name, path, offset+f.Offset, f.Type)
			default:
				inner := strings.TrimPrefix(path+"."+member, ".")
				fmt.Fprintf(b, "MEMBER_AT(%s, %s, %d, %d);\n", name, inner, offset+f.Offset, f.Type.Size())
				writeMembers(b, name, inner, offset+f.Offset, f.Type)
			}
		}
	case reflect.Array:
		if path != "" {
			writeMembers(b, name, path+"[0]", offset, t.Elem())
		}
	}
}

// memberOf returns the name of a field in C++, and whether its own fields stand in its place.
func memberOf(f reflect.StructField) (name string, inline bool) {
	switch tag := f.Tag.Get("cu"); tag {
	case "inline":
		return "", true
	case "":
	default:
		return tag, false
	}
	var b strings.Builder
	for i, r := range f.Name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String(), false
}
