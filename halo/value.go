package halo

import (
	"fmt"
	"reflect"
	"unsafe"
)

// holdsPoints returns an error unless a T can hold a point of the field: it has as many bytes, and
// where it is made of numbers they are those of the elements. Bytes hold anything, and so does a
// struct.
func holdsPoints[T any](f *Field) error {
	var zero T
	count, want := f.Spec.Arrays()
	if count > 1 {
		return fmt.Errorf("halo: field %q has %d arrays, a component each: take them one by one, see Field.Component", f.Spec.Name, count)
	}
	if size := int(unsafe.Sizeof(zero)); size != want {
		return fmt.Errorf("halo: values of %d bytes for field %q with elements of %d", size, f.Spec.Name, want)
	}
	number := reflect.TypeFor[T]()
	for number.Kind() == reflect.Array {
		number = number.Elem()
	}
	if !f.Spec.Element.madeOf(number.Kind()) {
		return fmt.Errorf("halo: values of type %v for field %q with elements %s", reflect.TypeFor[T](), f.Spec.Name, f.Spec.Element)
	}
	return nil
}

// madeOf reports whether numbers of a kind may stand for elements.
func (e Element) madeOf(kind reflect.Kind) bool {
	switch kind {
	case reflect.Float32:
		return e == Float32 || e == Complex64 || !e.number()
	case reflect.Float64:
		return e == Float64 || e == Complex128 || !e.number()
	case reflect.Int32, reflect.Uint32:
		return e == Int32 || !e.number()
	case reflect.Int64, reflect.Uint64, reflect.Int, reflect.Uint:
		return e == Int64 || !e.number()
	case reflect.Complex64:
		return e == Complex64 || !e.number()
	case reflect.Complex128:
		return e == Complex128 || !e.number()
	case reflect.Int16, reflect.Uint16:
		return !e.number()
	case reflect.Struct, reflect.Uint8, reflect.Int8, reflect.Bool:
		return true
	}
	return false // pointers, and what has some
}

// number reports whether the element is a number.
func (e Element) number() bool { return e.whole() || e.complex() || e == Float32 || e == Float64 }
