package mpi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	binding "github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/streams"
)

// whole sends a message by passing the address of its device memory to MPI. The host waits for earlier work, since
// MPI is not aware of streams.
type whole struct {
	*message
	sends   bool
	request binding.Request
}

// carry implements carrier.
func (w *whole) carry() error {
	if err := w.ready.Sync(w.processes.options.Limit); err != nil {
		return err
	}
	if err := w.span.Memory.Device().InContext(w.travel); err != nil {
		return err
	}
	return w.over()
}

// travel passes the span to MPI and waits. MPI copies to and from the GPU in the context of the calling thread.
func (w *whole) travel() error {
	began := time.Now()
	if err := w.hand(); err != nil {
		return err
	}
	if err := w.request.Wait(w.processes.failure.ctx, w.processes.options.Limit); err != nil {
		return err
	}
	w.sent(began)
	return nil
}

// hand passes the span to MPI.
func (w *whole) hand() error {
	at, bytes := addressOf(w.span), int(w.span.Length)
	if w.sends {
		return w.processes.data.IsendAt(&w.request, at, bytes, w.other, w.tag)
	}
	return w.processes.data.IrecvAt(&w.request, at, bytes, w.other, w.tag)
}

// progress implements carrier: nothing arrives before it is requested.
func (*whole) progress() {}

// quiet implements carrier.
func (w *whole) quiet() bool {
	done, err := w.request.Test()
	return done && err == nil
}

// addressOf returns the GPU address of a span.
func addressOf(s streams.Span) uintptr { return uintptr(s.Address()) }

// errNoDeviceMemory explains why CPU devices support only one network.
var errNoDeviceMemory = errors.New("CPU devices have no device memory: MPI sends their memory in pieces")

// Variables that tell a child process what to probe.
const (
	probeLibrary = "HALOX_PROBE_MPI"     // of the MPI library
	probeBackend = "HALOX_PROBE_BACKEND" // of the device
	probeDevice  = "HALOX_PROBE_DEVICE"  // id of the device
)

// childLimit bounds each wait of the child; the child itself may take slightly longer.
const childLimit = 30 * time.Second

// probeLengths are the lengths of probe messages in bytes: libraries send short messages eagerly, longer ones
// after a handshake, and some in pieces.
var probeLengths = []int64{8, 1000, 16 << 10, 96<<10 + 8, 1<<20 + 24}

// probeSaid is printed by a successful probe, since an exit code could be that of another program.
const probeSaid = "halox: MPI takes device memory"

// TakeProbe implements a program of Options.Probe: it starts MPI in one process, sends messages from memory of a
// device to other memory of that device, and compares the data. It writes the result to out and returns the exit
// code. If MPI does not support device memory, the program may crash instead.
func TakeProbe(out io.Writer) (exit int) {
	if err := takeProbe(); err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	fmt.Fprintln(out, probeSaid)
	return 0
}

func takeProbe() (err error) {
	id, err := strconv.Atoi(os.Getenv(probeDevice))
	if err != nil {
		return fmt.Errorf("mpi: probe (a program that halox starts): %s: %w", probeDevice, err)
	}
	library, err := binding.Open(os.Getenv(probeLibrary), binding.Launcher{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	comm, err := library.Init(ctx, childLimit)
	if err != nil {
		return err
	}
	if comm.Size() != 1 {
		return fmt.Errorf("mpi: probe: must be the only process, got %d", comm.Size())
	}
	device, end, err := openDevice(streams.Backend(os.Getenv(probeBackend)), id) // after MPI was started, as in a run
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	t := newDeviceTrial(ctx, comm, 0, childLimit)
	if err := t.open(device); err != nil {
		return err
	}
	if err := t.exchange(0, 0); err != nil {
		return err
	}
	return errors.Join(t.close(), comm.Free(), library.Finalize(ctx, childLimit))
}

// openDevice opens one device.
func openDevice(backend streams.Backend, id int) (d *streams.Device, end func() error, err error) {
	for _, k := range streams.Kinds() {
		if k.Backend != backend {
			continue
		}
		library := ""
		if k.Variable != "" {
			library = os.Getenv(k.Variable)
		}
		platform, err := k.Open(library, id+1)
		if err != nil {
			return nil, nil, err
		}
		devices, err := platform.Open(id)
		if err != nil {
			return nil, nil, errors.Join(err, platform.Close())
		}
		return devices[0], func() error { return errors.Join(streams.CloseAll(devices), platform.Close()) }, nil
	}
	return nil, nil, fmt.Errorf("mpi: probe: backend must be known, got %q", backend)
}

// trial sends messages between device memory of different processes, and compares the data.
type trial struct {
	rank  int    // of this process
	by    string // transport of the messages, for errors
	limit time.Duration

	// carry sends n bytes of out to a rank, and receives as many from another rank into in.
	carry func(to, from int, n int64) error

	out, in   *streams.Memory // device memory
	host      *streams.Memory // pinned memory
	stream    *streams.Stream
	resources streams.Resources
}

// open allocates the memory.
func (t *trial) open(d *streams.Device) (err error) {
	longest := probeLengths[len(probeLengths)-1]
	for _, m := range []struct {
		to   **streams.Memory
		make func(int64) (*streams.Memory, error)
	}{{&t.out, d.Alloc}, {&t.in, d.Alloc}, {&t.host, d.AllocPinned}} {
		if *m.to, err = m.make(longest); err != nil {
			return errors.Join(err, t.resources.Close())
		}
		t.resources.Add(*m.to)
	}
	if t.stream, err = d.NewStream(streams.Normal); err != nil {
		return errors.Join(err, t.resources.Close())
	}
	t.resources.Add(t.stream)
	return nil
}

// errWrong means that received bytes differ from those sent.
var errWrong = errors.New("data was corrupted")

// withAll exchanges messages with the ranks at distance 1, 2, 4 and so on, see exchange.
func (t *trial) withAll(size int) (wrong error) {
	for shift := 1; shift < size; shift *= 2 {
		err := t.exchange((t.rank+shift)%size, (t.rank-shift+size)%size)
		if err != nil && !errors.Is(err, errWrong) {
			return err
		}
		wrong = cmp.Or(wrong, err)
	}
	return wrong
}

// exchange sends messages of all lengths to one rank while it receives as many from another. It continues after
// corrupted messages, because the other ranks wait for theirs.
func (t *trial) exchange(to, from int) (wrong error) {
	for _, n := range probeLengths {
		err := t.one(to, from, n)
		if err != nil {
			err = fmt.Errorf("%d bytes %s from rank %d to rank %d: %w", n, t.by, from, t.rank, err)
		}
		if err != nil && !errors.Is(err, errWrong) {
			return err
		}
		wrong = cmp.Or(wrong, err)
	}
	return wrong
}

// one sends and receives one message.
func (t *trial) one(to, from int, n int64) error {
	sent, got := t.host.Span(0, n), t.host.Bytes()[:n]
	fill(got, t.rank, to)
	if err := t.copy(t.out.Span(0, n), sent); err != nil {
		return err
	}
	clear(got)
	if err := t.copy(t.in.Span(0, n), sent); err != nil {
		return err
	}
	if err := t.carry(to, from, n); err != nil {
		return err
	}
	if err := t.copy(sent, t.in.Span(0, n)); err != nil {
		return err
	}
	want := make([]byte, n)
	if fill(want, from, t.rank); !bytes.Equal(got, want) {
		return errWrong
	}
	return nil
}

// copy copies and waits.
func (t *trial) copy(dst, src streams.Span) error {
	return errors.Join(t.stream.Copy(dst, src), t.stream.Sync(t.limit))
}

// fill writes the data for a pair of ranks: numbers that do not repeat (SplitMix64, Steele et al. 2014).
func fill(b []byte, from, to int) {
	seed := uint64(from)<<32 | uint64(to)
	for i := range b {
		if i%8 == 0 {
			seed += 0x9e3779b97f4a7c15
		}
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		b[i] = byte((z ^ z>>27) >> (8 * (i % 8)))
	}
}

// deviceTrial is a trial of MPI with device memory.
type deviceTrial struct {
	trial
	ctx      context.Context
	comm     *binding.Comm
	tag      int
	requests [2]binding.Request
}

func newDeviceTrial(ctx context.Context, comm *binding.Comm, tag int, limit time.Duration) *deviceTrial {
	t := &deviceTrial{
		trial: trial{rank: comm.Rank(), by: "of device memory", limit: limit}, ctx: ctx, comm: comm, tag: tag,
	}
	t.carry = func(to, from int, n int64) error {
		return t.out.Device().InContext(func() error { return t.travel(to, from, n) })
	}
	return t
}

// travel sends and receives one message by MPI.
func (d *deviceTrial) travel(to, from int, n int64) error {
	if err := d.comm.IrecvAt(&d.requests[0], addressOf(d.in.All()), int(n), from, d.tag); err != nil {
		return err
	}
	if err := d.comm.IsendAt(&d.requests[1], addressOf(d.out.All()), int(n), to, d.tag); err != nil {
		return err
	}
	for i := range d.requests {
		if err := d.requests[i].Wait(d.ctx, d.limit); err != nil {
			return err
		}
	}
	return nil
}

// close frees the memory that MPI no longer uses.
func (d *deviceTrial) close() error {
	for i := range d.requests {
		if done, err := d.requests[i].Test(); !done || err != nil {
			return nil
		}
	}
	return d.resources.Close()
}

// TryDevice returns an error, on all processes, unless MPI transfers device memory correctly. All processes call
// it, each with one of its devices. It has three steps and stops after the first that fails:
//
// - the library reports support for device memory; skipped if insist is set;
// - each process starts another one, see Options.Probe, which sends messages of several lengths to itself and
// compares them;
// - all processes exchange such messages with the ranks at distance 1, 2, 4 and so on.
//
// If MPI crashes only between processes, or hosts, the last step ends the program.
func (p *Processes) TryDevice(ctx context.Context, d *streams.Device, insist bool) error {
	for _, part := range []struct {
		what string
		do   func() error
	}{
		{"ask MPI for device memory", func() error { return p.claims(d, insist) }},
		{"try MPI with device memory in a separate process", func() error { return p.askChild(ctx, d) }},
		{"exchange device memory by MPI", func() error { return p.exchange(ctx, d) }},
	} {
		if err := p.Agree(ctx, part.what, part.do()); err != nil {
			return err
		}
	}
	return nil
}

// claims returns an error unless MPI may support device memory.
func (p *Processes) claims(d *streams.Device, insist bool) error {
	switch {
	case d.HostMemory:
		return fmt.Errorf("mpi: %w", errNoDeviceMemory)
	case len(p.options.Probe) == 0:
		return errors.New("mpi: device memory needs a probe program, see Options.Probe")
	case insist:
		return nil
	}
	says, by, err := p.library.SaysGPU()
	if err == nil && !says {
		err = fmt.Errorf("mpi: %s does not report support for device memory (%s)", p.library, by)
	}
	return err
}

// askChild starts a process that probes the library.
func (p *Processes) askChild(ctx context.Context, d *streams.Device) error {
	ctx, stop := context.WithTimeout(ctx, 2*childLimit)
	defer stop()
	c := exec.CommandContext(ctx, p.options.Probe[0], p.options.Probe[1:]...)
	c.Env = append(binding.Alone(os.Environ()), probeLibrary+"="+p.library.File(),
		fmt.Sprintf("%s=%d", probeDevice, d.ID), probeBackend+"="+string(d.Backend))
	c.WaitDelay = time.Second
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	err := c.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has succeeded; a daemon started by Open MPI 4 keeps its output open for a while
	}
	switch {
	case err == nil && strings.Contains(said.String(), probeSaid):
		return nil
	case err == nil:
		err = errors.New("it did not print a result, see Options.Probe")
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if words := strings.TrimSpace(said.String()); words != "" {
		first, _, _ := strings.Cut(words, "\n")
		err = fmt.Errorf("%w: %s", err, first)
	}
	return fmt.Errorf("mpi: probe of device memory with %s: %w", p.library, err)
}

// exchange makes all processes exchange device memory.
func (p *Processes) exchange(ctx context.Context, d *streams.Device) (err error) {
	ctx, end := p.until(ctx)
	defer end()
	tag, err := p.Tags(1)
	if err != nil {
		return p.Fail(err)
	}
	t := newDeviceTrial(ctx, p.data, tag, p.options.Limit)
	if err := t.open(d); err != nil {
		return p.Fail(err) // the others wait for its messages
	}
	defer func() { err = errors.Join(err, t.close()) }()
	wrong := t.withAll(p.Size())
	if wrong != nil && !errors.Is(wrong, errWrong) {
		return p.Fail(wrong)
	}
	return wrong
}
