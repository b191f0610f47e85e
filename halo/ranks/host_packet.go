package ranks

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/halox/halox/streams"
)

// storePacket stores each 4 bytes beside a number, in twice as many bytes.
func storePacket(to, from []byte, number uint32) {
	words := streams.View[uint64](to)
	for i := range words {
		atomic.StoreUint64(&words[i], uint64(number)<<32|uint64(binary.NativeEndian.Uint32(from[4*i:])))
	}
}
