package halo

import "github.com/halox/halox/domain"

// FillPoints sets every point of the field, ghosts included, to value(p), p in
// global indices, which lie outside the grid for ghosts there. value is called
// by several goroutines at once; if it panics, or is nil, that is the error. It is the simple form of Fill.
func FillPoints[T any](f *Field, value func(p domain.Vec) T) error {
	if value == nil {
		return Fill[T](f, nil)
	}
	return Fill(f, func(int) Row[T] {
		return func(values []T, at domain.Vec) {
			for i := range values {
				values[i] = value(domain.Vec{at[0] + i, at[1], at[2]})
			}
		}
	})
}

// ReadAll returns all owned points of the field, x fastest without gaps. It is
// the simple form of Read.
func ReadAll[T any](f *Field) ([]T, error) {
	if err := f.Usable(); err != nil {
		return nil, err
	}
	box := f.Cut.Grid.Box()
	values := make([]T, box.Points())
	return values, Read(values, f, box)
}
