package mpi

import (
	"fmt"

	binding "github.com/halox/halox/internal/mpi"
)

// Wire carries bytes of host memory between this process and another by MPI alone: what it takes bounds what messages between
// their devices take. One thread uses it.
type Wire struct {
	processes  *Processes
	other, tag int
	memory     *binding.Memory
	request    binding.Request
}

// NewWire makes one for so many bytes. The other process makes one too, with the same tag. Close frees it.
func (p *Processes) NewWire(bytes int64, other, tag int) (*Wire, error) {
	if other < 0 || other >= p.Size() || other == p.Rank {
		return nil, fmt.Errorf("mpi: bytes between ranks %d and %d of %d", p.Rank, other, p.Size())
	}
	m, err := binding.NewMemory(int(bytes))
	return &Wire{processes: p, other: other, tag: tag, memory: m}, err
}

// Send sends all bytes, and returns when MPI is done with them. Where it fails all processes are told.
func (w *Wire) Send() error {
	return w.carry(w.processes.data.Isend(&w.request, w.memory.Bytes, w.other, w.tag))
}

// Receive receives all bytes.
func (w *Wire) Receive() error {
	return w.carry(w.processes.data.Irecv(&w.request, w.memory.Bytes, w.other, w.tag))
}

// carry waits for a request that has begun, unless it could not.
func (w *Wire) carry(err error) error {
	p := w.processes
	if err == nil {
		err = w.request.Wait(p.failure.ctx, p.options.Limit)
	}
	if err != nil && p.Err() == nil {
		_ = p.Fail(err) // which has it too
	}
	return err
}

// Close frees the memory; after a failure, when MPI may still use it, it does not.
func (w *Wire) Close() error {
	if w.processes.Err() == nil {
		w.memory.Free()
	}
	return nil
}
