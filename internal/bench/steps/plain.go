package steps

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

const minTurns = 3

// turns calls functions that measure in turns, on all processes together, at least minTurns times and until the budget
// of a row is spent. It returns the results of each without those of the first turn, which warms up.
func turns(ctx context.Context, on *run, each ...func() (float64, error)) ([][]float64, error) {
	all := make([][]float64, len(each))
	turn := func(int) (sum float64, err error) {
		for i, one := range each {
			v, err := one()
			if err != nil {
				return sum, err
			}
			all[i], sum = append(all[i], v), sum+v
		}
		return sum, nil
	}
	budget := measure.Budget{Warm: 1, Min: minTurns, Time: on.budget}
	_, err := bench.Together(ctx, on.Processes, turn, func(b bench.Batch) (results.Sample, error) {
		return measure.Repeat(ctx, budget, func() (float64, error) { return b(1) })
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i] = all[i][1:]
	}
	return all, nil
}

// maxPinned is the size of the pinned memory of a device into which its bytes are copied, one part after the other.
const maxPinned = 64 << 20

// copyOut copies as many bytes of devices as checkpoints do, from memory of the devices to pinned memory.
type copyOut struct {
	streams.Resources
	from, to []streams.Span
	at       []*streams.Stream
	bytes    []int64 // of each device
}

func newCopyOut(place *halo.Placement, arrays []checkpoint.Array) (c *copyOut, err error) {
	c = &copyOut{}
	for rank, d := range place.Devices {
		if !place.IsLocal(rank) {
			continue
		}
		bytes := int64(0)
		for _, a := range arrays {
			count, each := a.Field.Spec.Arrays()
			bytes += a.Field.Cut.Subdomains[rank].Box.Points() * int64(count*each)
		}
		size := min(bytes, maxPinned)
		from, to, s := c.Alloc(d, size), c.AllocPinned(d, size), c.NewStream(d, streams.Normal)
		if err := c.Err(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.from, c.to = append(c.from, from.All()), append(c.to, to.All())
		c.at, c.bytes = append(c.at, s), append(c.bytes, bytes)
	}
	return c, nil
}

// copy copies from all devices at once, and returns the time in microseconds.
func (c *copyOut) copy() (float64, error) {
	return timing.Batch(c.at, func(int) error {
		for i, s := range c.at {
			for left := c.bytes[i]; left > 0; left -= maxPinned {
				from, to := c.from[i], c.to[i]
				from.Length, to.Length = min(left, maxPinned), min(left, maxPinned)
				if err := s.Copy(to, from); err != nil {
					return err
				}
			}
		}
		return nil
	}, 1)
}

// plainBlock is the size of plain writes and reads.
const plainBlock = 1 << 20

// writePlainly writes a file, syncs it, and removes it. It returns the time without removing, in microseconds.
func writePlainly(path string, bytes int64) (took float64, err error) {
	block := make([]byte, plainBlock)
	rand.NewChaCha8([32]byte{}).Read(block)
	start := time.Now()
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	for ; bytes > 0 && err == nil; bytes -= plainBlock {
		_, err = f.Write(block[:min(bytes, plainBlock)])
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	return time.Since(start).Seconds() * 1e6, err
}

// readPlainly reads the files of a checkpoint.
func readPlainly(c *checkpoint.Checkpoint) error {
	block := make([]byte, plainBlock)
	read := func(name string) error {
		f, err := os.Open(filepath.Join(c.Path, filepath.FromSlash(name)))
		for err == nil {
			_, err = f.Read(block)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return errors.Join(err, f.Close())
	}
	for _, file := range c.Files {
		if err := read(file.Name); err != nil {
			return err
		}
	}
	return nil
}
