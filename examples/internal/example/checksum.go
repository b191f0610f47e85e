package example

import (
	"fmt"
	"hash/crc32"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/solvers/scheme"
)

// chunkPoints is how much of a field is on the host at once.
const chunkPoints = 1 << 20

// checksum returns the CRC32C of the owned points of variables at the level of a step: variable
// after variable, component by component, x fastest, each number little-endian.
func checksum(step int64, variables ...*scheme.Variable) (sum uint32, err error) {
	for _, v := range variables {
		f := v.Level(step)
		for c := range max(1, f.Spec.Components) {
			one := f
			if f.Spec.SoA {
				if one, err = f.Component(c); err != nil {
					return 0, err
				}
			}
			if sum, err = checksumOf(sum, one); err != nil {
				return 0, err
			}
		}
	}
	return sum, nil
}

func checksumOf(sum uint32, f *halo.Field) (uint32, error) {
	switch f.Spec.Element {
	case halo.Float64:
		return update[float64](sum, f)
	case halo.Float32:
		return update[float32](sum, f)
	}
	return 0, fmt.Errorf("a checksum of elements %q", f.Spec.Element)
}

// update adds the points of a field. Machines that halox runs on store numbers little-endian.
func update[T float32 | float64](sum uint32, f *halo.Field) (uint32, error) {
	err := f.Cut.Grid.EachChunk(chunkPoints, func(box domain.Box) error {
		values := make([]T, box.Points())
		if err := halo.Read(values, f, box); err != nil {
			return err
		}
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), len(values)*int(unsafe.Sizeof(values[0])))
		sum = crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), bytes)
		return nil
	})
	return sum, err
}

// ChecksumOf returns the checksum of values that lie in order on the host.
func ChecksumOf(all ...[]float64) (sum uint32) {
	for _, values := range all {
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 8*len(values))
		sum = crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), bytes)
	}
	return sum
}
