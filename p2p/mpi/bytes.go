package mpi

import (
	"context"
	"fmt"

	binding "github.com/halox/halox/internal/mpi"
)

// Tags of the communicator of collective calls.
const bytesTag = 1

// SendBytes sends bytes to a process that calls ReceiveBytes for as many, piece by piece. It
// returns when they may be changed, and waits for the other at most as long as the limit for each
// piece. Between two processes the calls are in the same order on both. Where it fails all
// processes are told.
func (p *Processes) SendBytes(ctx context.Context, what string, b []byte, to int) error {
	return p.inPieces(ctx, fmt.Sprintf("%s, to %s", what, p.Name(to)), b, func(r *binding.Request, memory, piece []byte) (func(), error) {
		copy(memory, piece)
		return func() {}, p.control.Isend(r, memory, to, bytesTag)
	})
}

// ReceiveBytes fills b with what a process sends by SendBytes.
func (p *Processes) ReceiveBytes(ctx context.Context, what string, b []byte, from int) error {
	return p.inPieces(ctx, fmt.Sprintf("%s, from %s", what, p.Name(from)), b, func(r *binding.Request, memory, piece []byte) (func(), error) {
		return func() { copy(piece, memory) }, p.control.Irecv(r, memory, from, bytesTag)
	})
}

// inPieces begins a request for each piece of the bytes, waits for it, and ends it.
func (p *Processes) inPieces(ctx context.Context, what string, b []byte, begin func(r *binding.Request, memory, piece []byte) (end func(), err error)) error {
	return p.together(ctx, what, func(ctx context.Context) error {
		size := min(int64(len(b)), p.options.Piece)
		if size == 0 {
			return nil
		}
		m, err := binding.NewMemory(int(size))
		if err != nil {
			return err
		}
		for len(b) > 0 {
			n := min(len(b), len(m.Bytes))
			var r binding.Request
			end, err := begin(&r, m.Bytes[:n], b[:n])
			if err == nil {
				err = r.Wait(ctx, p.options.Limit)
			}
			if err != nil {
				return err // MPI may still use the memory
			}
			end()
			b = b[n:]
		}
		m.Free()
		return nil
	})
}
