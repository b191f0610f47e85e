package streams

import "unsafe"

func (h *hostDriver) alloc(bytes int64) (*Memory, error)  { return h.block(bytes, false) }
func (h *hostDriver) pinned(bytes int64) (*Memory, error) { return h.block(bytes, true) }

// block returns zeroed bytes aligned to 128.
func (h *hostDriver) block(bytes int64, pinned bool) (*Memory, error) {
	if err := h.ledger.take(bytes); err != nil {
		return nil, err
	}
	const alignment = 128
	block := make([]byte, bytes+alignment)
	adviseHuge(block)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(block))) & (alignment - 1)
	return &Memory{bytes: block[skip : int64(skip)+bytes : int64(skip)+bytes], pinned: pinned}, nil
}

func (h *hostDriver) free(m *Memory) error {
	h.ledger.give(m.size)
	m.bytes = nil
	return nil
}

func (h *hostDriver) host() *hostLedger { return h.ledger }

func (h *hostDriver) usage() (free, total int64, err error) {
	m, err := h.ledger.free()
	return m.Free, m.Total, err
}
