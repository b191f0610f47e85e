package mpi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	binding "github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/streams"
)

// TryDevice returns an error, on all processes, unless MPI takes memory of the devices right, each process giving one of its
// own. All call it. It goes on only where all went well before:
//
//   - the library says that it takes such memory; believed without that where insist is set;
//   - a process that each one starts, see Options.Probe, sends itself messages of several lengths, and they arrive unchanged;
//   - all processes send each other such messages, each to those whose distance in rank is 1, 2, 4 and so on.
//
// What crashes MPI only between processes, or hosts, ends the program in the last part.
func (p *Processes) TryDevice(ctx context.Context, d *streams.Device, insist bool) error {
	for _, part := range []struct {
		what string
		do   func() error
	}{
		{"ask MPI for device memory", func() error { return p.claims(d, insist) }},
		{"try MPI with device memory in a process of its own", func() error { return p.askChild(ctx, d) }},
		{"exchange device memory by MPI", func() error { return p.exchange(ctx, d) }},
	} {
		if err := p.Agree(ctx, part.what, part.do()); err != nil {
			return err
		}
	}
	return nil
}

// claims returns an error unless there may be something to try.
func (p *Processes) claims(d *streams.Device, insist bool) error {
	switch {
	case d.HostMemory:
		return fmt.Errorf("mpi: %w", errNoDeviceMemory)
	case len(p.options.Probe) == 0:
		return errors.New("mpi: there is no program to try device memory with, see Options.Probe")
	case insist:
		return nil
	}
	says, by, err := p.library.SaysGPU()
	if err == nil && !says {
		err = fmt.Errorf("mpi: %s does not say that it takes device memory (%s)", p.library, by)
	}
	return err
}

// askChild starts a process that tries the library alone.
func (p *Processes) askChild(ctx context.Context, d *streams.Device) error {
	ctx, stop := context.WithTimeout(ctx, 2*childLimit)
	defer stop()
	c := exec.CommandContext(ctx, p.options.Probe[0], p.options.Probe[1:]...)
	c.Env = append(binding.Alone(os.Environ()), probeLibrary+"="+p.library.File(), fmt.Sprintf("%s=%d", probeDevice, d.ID), probeBackend+"="+string(d.Backend))
	c.WaitDelay = time.Second
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	err := c.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has ended well; a daemon that Open MPI 4 starts for a process alone holds its output for a while
	}
	switch {
	case err == nil && strings.Contains(said.String(), probeSaid):
		return nil
	case err == nil:
		err = errors.New("it does not say what came of it, see Options.Probe")
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if words := strings.TrimSpace(said.String()); words != "" {
		first, _, _ := strings.Cut(words, "\n")
		err = fmt.Errorf("%w: %s", err, first)
	}
	return fmt.Errorf("mpi: a process that gave %s device memory: %w", p.library, err)
}

// exchange has all send each other device memory.
func (p *Processes) exchange(ctx context.Context, d *streams.Device) (err error) {
	ctx, end := p.until(ctx)
	defer end()
	tag, err := p.Tags(1)
	if err != nil {
		return p.Fail(err)
	}
	t := &trial{ctx: ctx, comm: p.data, limit: p.options.Limit, tag: tag}
	if err := t.open(d); err != nil {
		return p.Fail(err) // others wait for its messages
	}
	defer func() { err = errors.Join(err, t.close()) }()
	var wrong error
	for shift := 1; shift < p.Size(); shift *= 2 {
		err := t.exchange((p.Rank+shift)%p.Size(), (p.Rank-shift+p.Size())%p.Size())
		if err != nil && !errors.Is(err, errWrong) {
			return p.Fail(err)
		}
		wrong = cmp.Or(wrong, err)
	}
	return wrong
}
