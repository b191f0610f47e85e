package ranks

import "unsafe"

// Value is what PutValue puts: 4 or 8 bytes.
type Value interface {
	int32 | uint32 | float32 | int64 | uint64 | float64
}

// PutValue puts a value as a packet: the value and its notification in one. At the target it takes twice as many bytes,
// at an offset that is a multiple of that. The number differs from all that were put there before,
// also in earlier runs.
func PutValue[T Value](r *Rank, w Window, to int, offset int64, v T, number uint32) {
	r.PutPacket(w, to, offset, bytesIn([]T{v}), number)
}

// WaitValue waits for a value that was put with a number at the beginning of some memory. The place may be put to
// again once the sender knows that it returned.
func WaitValue[T Value](r *Rank, at []byte, number uint32) (v T, came bool) {
	all := []T{v}
	if !r.WaitPacket(at, bytesIn(all), number) {
		return v, false
	}
	return all[0], true
}

// bytesIn is the memory of some values.
func bytesIn[T Value](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}
