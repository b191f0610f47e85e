package streams

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugeFrom is the size from which a block holds some huge pages.
const hugeFrom = 8 << 20

// adviseHuge asks for huge pages under a block: a sweep walks through three
// planes of a field at once, and spends a tenth of its time on finding the
// pages otherwise. The kernel may decline, which is no error.
func adviseHuge(block []byte) {
	if len(block) < hugeFrom {
		return
	}
	page := os.Getpagesize()
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(block))) & uintptr(page-1))
	whole := (len(block) - skip) / page * page
	_ = unix.Madvise(block[skip:skip+whole], unix.MADV_HUGEPAGE)
}
