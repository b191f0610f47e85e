package streams

import (
	"fmt"
	"unsafe"
)

func (h *hostDriver) alloc(bytes int64) (*Memory, error) {
	for {
		used := h.used.Load()
		if err := h.checkRoom(bytes, used); err != nil {
			return nil, err
		}
		if h.used.CompareAndSwap(used, used+bytes) {
			return h.block(bytes, false), nil
		}
	}
}

func (h *hostDriver) pinned(bytes int64) (*Memory, error) {
	if err := h.checkRoom(bytes, h.used.Load()); err != nil {
		return nil, err
	}
	return h.block(bytes, true), nil
}

// maxHostBytes is more than a machine has, and less than Go can be asked for.
const maxHostBytes = 1 << 46

// checkRoom returns an error if there are not so many bytes beside those in use.
func (h *hostDriver) checkRoom(bytes, used int64) error {
	total := h.total
	if total <= 0 {
		total = maxHostBytes
	}
	if bytes > total-used {
		return fmt.Errorf("out of memory: %d bytes in use of %d", used, total)
	}
	return nil
}

// block returns zeroed bytes aligned to 128.
func (h *hostDriver) block(bytes int64, pinned bool) *Memory {
	const alignment = 128
	block := make([]byte, bytes+alignment)
	adviseHuge(block)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(block))) & (alignment - 1)
	return &Memory{bytes: block[skip : int64(skip)+bytes : int64(skip)+bytes], pinned: pinned}
}

func (h *hostDriver) free(m *Memory) error {
	if !m.pinned {
		h.used.Add(-m.size)
	}
	m.bytes = nil
	return nil
}

func (h *hostDriver) usage() (free, total int64, err error) {
	return h.total - h.used.Load(), h.total, nil
}
