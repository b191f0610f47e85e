package mpi

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// Barrier returns when all processes have called it, or an error after that long.
func (c *Comm) Barrier(ctx context.Context, limit time.Duration) error {
	return c.together(ctx, limit, fIbarrier, func(f frame) arguments {
		return arguments{uintptr(c.handle), f.request()}
	})
}

// together makes one collective call and waits for it.
func (c *Comm) together(ctx context.Context, limit time.Duration, fn function, one func(frame) arguments) error {
	r := &Request{}
	if err := r.begin(c, fn, allRanks, 0); err != nil {
		return err
	}
	if err := r.add(one); err != nil {
		return err
	}
	return r.Wait(ctx, limit)
}

// Broadcast returns, on all processes, the bytes that the root has given. All must call it;
// what others than the root give is not looked at.
func (c *Comm) Broadcast(ctx context.Context, limit time.Duration, b []byte, root int) ([]byte, error) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(b)))
	if err := c.broadcast(ctx, limit, length[:], root); err != nil {
		return nil, err
	}
	all := make([]byte, binary.LittleEndian.Uint64(length[:]))
	if c.rank == root {
		copy(all, b)
	}
	for at := 0; at < len(all); at += c.library.most {
		if err := c.broadcast(ctx, limit, all[at:min(len(all), at+c.library.most)], root); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// broadcast is one call, through memory that stays as it is when the wait is given up.
func (c *Comm) broadcast(ctx context.Context, limit time.Duration, b []byte, root int) error {
	m, err := NewMemory(max(1, len(b)))
	if err != nil {
		return err
	}
	copy(m.Bytes, b)
	err = c.together(ctx, limit, fIbcast, func(f frame) arguments {
		return arguments{addressOf(m.Bytes), uintptr(len(b)), uintptr(c.library.handles.byteType), uintptr(root), uintptr(c.handle), f.request()}
	})
	if err != nil {
		return err // MPI may still write into the memory
	}
	copy(b, m.Bytes)
	m.Free()
	return nil
}

// Allgather returns what each process has given, by rank. All must call it; together they may
// give 1 GiB.
func (c *Comm) Allgather(ctx context.Context, limit time.Duration, b []byte) ([][]byte, error) {
	lengths, err := c.allgatherLengths(ctx, limit, len(b))
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for _, n := range lengths {
		total += n
	}
	if total > int64(c.library.most) {
		return nil, fmt.Errorf("MPI_Iallgatherv with all ranks: %d bytes together; at most %d are possible", total, c.library.most)
	}
	return c.allgather(ctx, limit, b, lengths, int(total))
}

// allgatherLengths returns how many bytes each process gives.
func (c *Comm) allgatherLengths(ctx context.Context, limit time.Duration, n int) ([]int64, error) {
	m, err := NewMemory(8 + 8*c.size)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(m.Bytes, uint64(n))
	kind := uintptr(c.library.handles.byteType)
	err = c.together(ctx, limit, fIallgather, func(f frame) arguments {
		return arguments{addressOf(m.Bytes), 8, kind, addressOf(m.Bytes) + 8, 8, kind, uintptr(c.handle), f.request()}
	})
	if err != nil {
		return nil, err // MPI may still write into the memory
	}
	lengths := make([]int64, c.size)
	for i := range lengths {
		lengths[i] = int64(binary.LittleEndian.Uint64(m.Bytes[8+8*i:]))
	}
	m.Free()
	return lengths, nil
}

// allgather gathers pieces of known lengths. The memory has the counts, the places, this
// process's piece and all pieces.
func (c *Comm) allgather(ctx context.Context, limit time.Duration, b []byte, lengths []int64, total int) ([][]byte, error) {
	countsAt, placesAt, mineAt := 0, 4*c.size, 8*c.size
	allAt := mineAt + len(b)
	m, err := NewMemory(allAt + max(1, total))
	if err != nil {
		return nil, err
	}
	place := int64(0)
	for i, n := range lengths {
		binary.LittleEndian.PutUint32(m.Bytes[countsAt+4*i:], uint32(n))
		binary.LittleEndian.PutUint32(m.Bytes[placesAt+4*i:], uint32(place))
		place += n
	}
	copy(m.Bytes[mineAt:], b)
	base, kind := addressOf(m.Bytes), uintptr(c.library.handles.byteType)
	err = c.together(ctx, limit, fIallgatherv, func(f frame) arguments {
		return arguments{base + uintptr(mineAt), uintptr(len(b)), kind, base + uintptr(allAt), base + uintptr(countsAt), base + uintptr(placesAt), kind, uintptr(c.handle), f.request()}
	})
	if err != nil {
		return nil, err // MPI may still write into the memory
	}
	all := make([][]byte, c.size)
	place = int64(allAt)
	for i, n := range lengths {
		all[i] = append([]byte(nil), m.Bytes[place:place+n]...)
		place += n
	}
	m.Free()
	return all, nil
}
