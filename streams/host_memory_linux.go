package streams

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugeFrom is the size in bytes from which a block contains some huge pages.
const hugeFrom = 8 << 20

// adviseHuge requests huge pages for a block. A sweep reads three planes of a field at once, and otherwise spends
// a tenth of its time on page lookups. The kernel may ignore the request.
func adviseHuge(block []byte) {
	if len(block) < hugeFrom {
		return
	}
	page := os.Getpagesize()
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(block))) & uintptr(page-1))
	whole := (len(block) - skip) / page * page
	_ = unix.Madvise(block[skip:skip+whole], unix.MADV_HUGEPAGE)
}
