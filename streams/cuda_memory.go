package streams

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/halox/halox/internal/cuda"
)

func (c *cudaDriver) alloc(bytes int64) (*Memory, error) {
	p, err := c.ctx.MemAlloc(uint64(bytes))
	return &Memory{addr: uint64(p), handle: p}, outOfMemory(err)
}

// outOfMemory adds ErrOutOfMemory to an error of the driver that says so.
func outOfMemory(err error) error {
	if errors.Is(err, cuda.CodeOutOfMemory) {
		return fmt.Errorf("%w: %w", ErrOutOfMemory, err)
	}
	return err
}

func (c *cudaDriver) pinned(bytes int64) (*Memory, error) {
	if err := c.ledger.take(bytes); err != nil {
		return nil, err
	}
	m, err := c.hostAlloc(bytes)
	if err != nil {
		c.ledger.give(bytes)
	}
	return m, outOfMemory(err)
}

// hostAlloc returns pinned memory that kernels of the GPU find too.
func (c *cudaDriver) hostAlloc(bytes int64) (*Memory, error) {
	p, err := c.ctx.HostAlloc(uint64(bytes), cuda.HostPortable|cuda.HostMapped)
	if err != nil {
		return nil, err
	}
	m := &Memory{pinned: true, handle: p, bytes: unsafe.Slice((*byte)(p), bytes)}
	address, err := c.ctx.HostDevicePointer(p)
	if err != nil {
		return nil, errors.Join(err, c.ctx.HostFree(p))
	}
	m.addr = uint64(address)
	return m, nil
}

func (c *cudaDriver) free(m *Memory) error {
	m.bytes = nil
	if p, ok := m.handle.(unsafe.Pointer); ok {
		c.ledger.give(m.size)
		return c.ctx.HostFree(p)
	}
	return c.ctx.MemFree(m.handle.(cuda.DevicePtr))
}

func (c *cudaDriver) host() *hostLedger { return c.ledger }

func (c *cudaDriver) usage() (free, total int64, err error) {
	f, t, err := c.ctx.MemInfo()
	return int64(f), int64(t), err
}
