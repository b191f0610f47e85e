package kernels

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/halox/halox/internal/nvrtc"
)

//go:embed cu/*.cu cu/*.cuh
var sources embed.FS

// Program is a CUDA source under cu/, or of a user, with everything that determines its variant. Programs with
// equal fields compile to the same code.
type Program struct {
	File    string   // under cu/, or the name of a user source
	Defines []string // NAME=VALUE
	Headers []Header // generated headers; the others are in cu/
	Mirrors []Mirror // types and constants shared with Go
	own     string   // text of a user source
}

// Header is a generated header.
type Header struct {
	Name string // as in #include
	Text string // content
}

// String returns the file and the variant.
func (p Program) String() string {
	if len(p.Headers) == 0 {
		return fmt.Sprintf("%s%v", p.File, p.Defines)
	}
	h := sha256.New()
	for _, header := range p.Headers {
		h.Write([]byte(header.Text))
	}
	return fmt.Sprintf("%s%v", p.File, append(slices.Clone(p.Defines), fmt.Sprintf("%x", h.Sum(nil)[:4])))
}

// key identifies the program.
func (p Program) key() string {
	return fmt.Sprintf("%s %q %q %s", p.File, p.Defines, p.Headers, p.own)
}

// source returns the compiler input: the file, and all headers that it includes, directly or indirectly.
func (p Program) source() (nvrtc.Source, error) {
	main := nvrtc.Source{Name: p.File, Text: p.own}
	if p.own == "" {
		text, err := sources.ReadFile("cu/" + p.File)
		if err != nil {
			return main, err
		}
		main.Text = string(text)
	}
	main.Text += "\n" + layoutSource(p.File, p.Mirrors) // a user text may not end with a newline
	return main, p.addHeaders(&main, main.Text)
}

// included finds the headers of cu/ that a text includes; those for the CPU have other names.
var included = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]+"(\w+\.cuh)"`)

// callersHeader is included by every user source, implicitly.
const callersHeader = "halox.cuh"

// addHeaders adds the headers that a text includes, each once.
func (p Program) addHeaders(to *nvrtc.Source, text string) error {
	names := included.FindAllStringSubmatch(text, -1)
	if p.own != "" && len(to.Headers) == 0 {
		names = append(names, []string{"", callersHeader})
	}
	for _, name := range names {
		if slices.ContainsFunc(to.Headers, func(h nvrtc.Header) bool { return h.Name == name[1] }) {
			continue
		}
		text, err := p.header(name[1])
		if errors.Is(err, fs.ErrNotExist) && p.own != "" {
			continue // a user header, which the compiler will not find
		}
		if err != nil {
			return err
		}
		to.Headers = append(to.Headers, nvrtc.Header{Name: name[1], Text: text})
		if err := p.addHeaders(to, text); err != nil {
			return err
		}
	}
	return nil
}

// header returns the text of a header, generated or from cu/.
func (p Program) header(name string) (string, error) {
	for _, h := range p.Headers {
		if h.Name == name {
			return h.Text, nil
		}
	}
	text, err := sources.ReadFile("cu/" + name)
	return string(text), err
}

// sourcesForCPU replace CUDA when the sources are compiled as C++.
//
//go:embed cu/cpu
var sourcesForCPU embed.FS

// Files returns all sources of the program by name, and those under cpu/ that replace CUDA when they are compiled
// as C++ for the CPU.
func (p Program) Files() (map[string]string, error) {
	source, err := p.source()
	if err != nil {
		return nil, err
	}
	files := map[string]string{p.File: source.Text}
	for _, h := range source.Headers {
		files[h.Name] = h.Text
	}
	names, err := fs.Glob(sourcesForCPU, "cu/cpu/*.h")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := sourcesForCPU.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[strings.TrimPrefix(name, "cu/")] = string(text)
	}
	return files, nil
}

// Mirror declares that a struct of the CUDA sources has the layout of a Go type, or that a constant there has the
// value of a Go constant. The struct must have the members of the Go type: member next_word for field nextWord, or
// the name in the tag cu. The fields of a struct with the tag cu:"inline" are members of the outer one.
type Mirror struct {
	Name  string // in C++
	Value any    // of the Go type, or its reflect.Type, or the constant
}

// memberAt asserts the offset and the size of a member. NVRTC has no __builtin_offsetof.
const memberAt = `#ifdef __CUDACC_RTC__
#define OFFSET_OF(type, member) __INTADDR__(&((type *)0)->member)
#else
#define OFFSET_OF(type, member) __builtin_offsetof(type, member)
#endif
#define MEMBER_AT(type, member, offset, size) \
	static_assert((unsigned long long)OFFSET_OF(type, member) == offset && \
	                  sizeof(((type *)0)->member) == size, "as in Go")
`

// layoutSource returns C++ that checks a file against all its mirrors, at compile time.
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

// writeMembers asserts the offsets and the sizes of all members of a Go type. path is that of a member of the C++
// struct, whose offset is given.
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

// memberOf returns the name of a field in C++, and whether its own fields replace it.
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
