package sweep

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// cNumbers are the names in C of the kinds that Go and C store alike.
var cNumbers = map[reflect.Kind]string{
	reflect.Bool: "bool", reflect.Int8: "signed char", reflect.Uint8: "unsigned char", reflect.Int16: "short", reflect.Uint16: "unsigned short",
	reflect.Int32: "int", reflect.Uint32: "unsigned", reflect.Int64: "long long", reflect.Uint64: "unsigned long long",
	reflect.Float32: "float", reflect.Float64: "double",
}

// maxParameters bounds the bytes of parameters, which lie in the argument of a launch.
const maxParameters = 1024

// checkParameters returns an error unless values of the type can be parameters.
func checkParameters(t reflect.Type) error {
	if t == nil || t.Kind() != reflect.Struct || t.NumField() == 0 {
		return fmt.Errorf("parameters of type %v: a struct of numbers is needed", t)
	}
	if t.Size() > maxParameters {
		return fmt.Errorf("parameters of %d bytes; up to %d are possible", t.Size(), maxParameters)
	}
	return checkFields(t)
}

func checkFields(t reflect.Type) error {
	switch {
	case cNumbers[t.Kind()] != "":
		return nil
	case t.Kind() == reflect.Array && t.Len() > 0:
		return checkFields(t.Elem())
	case t.Kind() == reflect.Struct && t.NumField() > 0:
		blank := false
		for i := range t.NumField() {
			f := t.Field(i)
			if err := checkName(f.Name); err != nil {
				return fmt.Errorf("parameters with a field that a source could not name: %w", err)
			}
			if f.Name == "_" && blank {
				return errors.New("parameters with two fields _: give each a name")
			}
			blank = blank || f.Name == "_"
			if err := checkFields(f.Type); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("a kernel cannot be given a %v: parameters are numbers of fixed size, and arrays and structs of them", t)
}

// parametersSource declares struct Parameters, with the names that the fields have in Go.
func parametersSource(p any) string {
	if p == nil {
		return "struct Parameters {\n\tlong long none;\n};\n"
	}
	t := parametersType(p)
	return fmt.Sprintf("struct Parameters %s;\nstatic_assert(sizeof(Parameters) == %d, \"as in Go\");\n", structBody(t, 1), t.Size())
}

func structBody(t reflect.Type, depth int) string {
	var b strings.Builder
	indent := strings.Repeat("\t", depth)
	b.WriteString("{\n")
	for i := range t.NumField() {
		f, of, lengths := t.Field(i), t.Field(i).Type, ""
		for of.Kind() == reflect.Array {
			lengths += fmt.Sprintf("[%d]", of.Len())
			of = of.Elem()
		}
		name := cNumbers[of.Kind()]
		if of.Kind() == reflect.Struct {
			name = "struct " + structBody(of, depth+1)
		}
		fmt.Fprintf(&b, "%s%s %s%s;\n", indent, name, f.Name, lengths)
	}
	b.WriteString(indent[1:] + "}")
	return b.String()
}

// parameterBytes are the parameters as they lie in memory, in whole words of 8 bytes. p may be a
// struct or a pointer to one.
func parameterBytes(p any) []byte {
	if p == nil {
		return make([]byte, 8)
	}
	t := parametersType(p)
	bytes := make([]byte, (t.Size()+7)/8*8)
	if v := reflect.ValueOf(p); v.Kind() == reflect.Pointer {
		copy(bytes, unsafe.Slice((*byte)(v.UnsafePointer()), t.Size()))
	} else {
		holder := reflect.New(t)
		holder.Elem().Set(v)
		copy(bytes, unsafe.Slice((*byte)(holder.UnsafePointer()), t.Size()))
	}
	return bytes
}

// parametersType is the struct that Parameters is or points to.
func parametersType(p any) reflect.Type {
	t := reflect.TypeOf(p)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
