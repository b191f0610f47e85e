package mpi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/halox/halox/internal/nccl"
	"github.com/halox/halox/streams"
)

// tryLimit is how long a message may take by which NCCL is tried. Connections of the first take seconds.
const tryLimit = 20 * time.Second

// TryNCCL returns an error, on all processes, unless NCCL carries messages between their devices right, each process giving one
// of its own: it opens the library that the variable HALOX_NCCL names, else libnccl.so.2, and sends messages of several lengths
// to the processes whose distance in rank is 1, 2, 4 and so on. All processes call it. What NCCL fails of here is no failure of
// the processes.
func (p *Processes) TryNCCL(ctx context.Context, d *streams.Device) error {
	if p.pairs != nil {
		return nil
	}
	made, err := p.openNCCL(ctx, d)
	if err != nil {
		return err
	}
	p.pairs = made
	if err := p.Agree(ctx, "send messages by NCCL", p.sendByNCCL(d)); err != nil {
		p.pairs = nil
		return errors.Join(err, made.close(err))
	}
	return nil
}

// NCCL names the library and over what it goes, "" before TryNCCL.
func (p *Processes) NCCL() string {
	if p.pairs == nil {
		return ""
	}
	return p.pairs.String()
}

// openNCCL opens the same library on all processes.
func (p *Processes) openNCCL(ctx context.Context, d *streams.Device) (made *pairs, err error) {
	if d.HostMemory {
		err = fmt.Errorf("mpi: %w", errNoDeviceMemory)
	} else if made, err = openPairs(os.Getenv(nccl.Variable), p.library); err != nil {
		err = fmt.Errorf("mpi: %w", err)
	}
	version := []byte{}
	if err == nil {
		version = []byte(made.library.Version)
	}
	all, gathered := p.Gather(ctx, "compare versions of NCCL", version)
	for rank, v := range all {
		if err == nil && len(v) > 0 && string(v) != string(version) {
			err = fmt.Errorf("mpi: %s has NCCL %s, %s has %s", p.Name(rank), v, p.Name(p.Rank), version)
		}
	}
	if err := cmp.Or(gathered, p.Agree(ctx, "open NCCL", err)); err != nil {
		if made != nil {
			err = errors.Join(err, made.close(err))
		}
		return nil, err
	}
	return made, nil
}

// sendByNCCL sends messages of all lengths, to one process at a time, while as many come from another.
func (p *Processes) sendByNCCL(d *streams.Device) (err error) {
	tag, err := p.Tags(1)
	if err != nil {
		return err
	}
	t := &trial{limit: p.options.Limit}
	if err := t.open(d); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	var wrong error
	for shift := 1; shift < p.Size(); shift *= 2 {
		for _, n := range probeLengths {
			err := p.oneByNCCL(t, (p.Rank+shift)%p.Size(), (p.Rank-shift+p.Size())%p.Size(), tag, n)
			if err != nil && !errors.Is(err, errWrong) {
				return err
			}
			wrong = cmp.Or(wrong, err)
		}
	}
	return wrong
}

// oneByNCCL sends and receives one message, on threads of their own.
func (p *Processes) oneByNCCL(t *trial, to, from, tag int, n int64) (err error) {
	sent, got := t.host.Span(0, n), t.host.Bytes()[:n]
	fill(got, p.Rank, to)
	if err := t.copy(t.out.Span(0, n), sent); err != nil {
		return err
	}
	clear(got)
	if err := t.copy(t.in.Span(0, n), sent); err != nil {
		return err
	}
	received := make(chan error, 1)
	go func() { received <- p.turnByNCCL(t.in.Span(0, n), from, tag, false) }()
	err = p.turnByNCCL(t.out.Span(0, n), to, tag, true)
	if err = errors.Join(err, <-received); err != nil {
		return err
	}
	if err := t.copy(sent, t.in.Span(0, n)); err != nil {
		return err
	}
	want := make([]byte, n)
	if fill(want, from, p.Rank); !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes by NCCL from rank %d to rank %d: %w", n, from, p.Rank, errWrong)
	}
	return nil
}

// turnByNCCL carries one message.
func (p *Processes) turnByNCCL(s streams.Span, other, tag int, sends bool) (err error) {
	whom := fmt.Sprintf("%d bytes by NCCL from %s", s.Length, p.Name(other))
	if sends {
		whom = fmt.Sprintf("%d bytes by NCCL to %s", s.Length, p.Name(other))
	}
	m, err := p.newMessage(s, other, tag, whom)
	if err != nil {
		return err
	}
	l, err := newLinked(m, p.pairs, sends)
	if err != nil {
		return errors.Join(err, m.resources.Close())
	}
	l.limit = min(l.limit, tryLimit)
	if err := l.carry(); err != nil {
		err = fmt.Errorf("mpi: %s: %w", whom, err)
		if !l.quiet() {
			return errors.Join(err, m.stream.Close())
		}
		return errors.Join(err, m.resources.Close())
	}
	return m.resources.Close()
}
