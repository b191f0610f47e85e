package ranks

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/halox/halox/streams"
)

// storePacket stores each 4 bytes beside a number, in twice as many bytes.
func storePacket(to, from []byte, number uint32) {
	words := streams.View[uint64](to)
	for i := range words {
		atomic.StoreUint64(&words[i], uint64(number)<<32|uint64(binary.NativeEndian.Uint32(from[4*i:])))
	}
}

// alignOf is what the address of a packet of some bytes is a multiple of.
func alignOf(bytes []byte) int64 {
	if len(bytes) > 4 {
		return 16
	}
	return 8
}

func isAligned(at []byte, align int64) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(at)))%uintptr(align) == 0
}
