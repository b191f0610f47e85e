//go:build unix

package mpi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

const testLimit = 5 * time.Minute

func TestMain(m *testing.M) {
	usual := mpi.Options{Limit: testLimit, Piece: 64}
	short := mpi.Options{Limit: testmpi.Limit()}
	testmpi.Main(m, map[string]func() error{
		"together":  testmpi.AsOne(usual, together),
		"messages":  testmpi.AsOne(usual, onDevices(messages).overNetwork),
		"agree":     testmpi.AsOne(usual, agree),
		"fails":     testmpi.AsOne(usual, fails),
		"stopped":   testmpi.AsOne(short, func(p *mpi.Processes) error { return stopped(p, p.Size()-1) }),
		"stopped-0": testmpi.AsOne(short, func(p *mpi.Processes) error { return stopped(p, 0) }),
		"hangs":     testmpi.AsOne(short, onDevices(hangs).overNetwork),
		"first":     testmpi.AsOne(short, firstAlone),
		"mismatch":  testmpi.AsOne(usual, mismatch),
		"leaves":    testmpi.AsOne(short, leaves),
		"limits":    otherLimits,
		"duplicate": testmpi.AsOne(short, duplicated),
		"behind":    testmpi.AsOne(usual, failsBehind),
		"misuse":    testmpi.AsOne(usual, misuse),
		"queue":     testmpi.AsOne(usual, queued),
		"nothing":   testmpi.AsOne(short, func(*mpi.Processes) error { return nil }),
		"try":       testmpi.AsOne(usual, onDevices(tryDevice).run),
		"try nccl":  testmpi.AsOne(short, onDevices(tryNCCL).run),
		"one way":   testmpi.AsOne(short, onDevices(oneWay).overNetwork),
		"killed":    testmpi.AsOne(short, onDevices(killed).overNetwork),
		"mapped":    testmpi.AsOne(usual, onDevices(mapped).run),
		"map errs":  testmpi.AsOne(usual, onDevices(mapErrs).run),
		"map hangs": testmpi.AsOne(short, onDevices(mapHangs).run),
		"map ends":  testmpi.AsOne(short, onDevices(mapEnds).run),
		"try ipc":   testmpi.AsOne(usual, onDevices(tryIPC).run),
	})
}

// Variables of programs: the network of all messages, and whether MPI is tried with device memory regardless of
// its report.
const (
	networkVariable = "HALOX_TEST_NETWORK"
	insistVariable  = "HALOX_TEST_INSIST"
)

// onDevices is a program with two devices per process.
type onDevices func(p *mpi.Processes, devices []*streams.Device) error

// run opens the devices.
func (program onDevices) run(p *mpi.Processes) error {
	platform, err := testdevices.Launched(2)
	if err != nil {
		return err
	}
	devices, err := platform.Open()
	if err != nil {
		return err
	}
	if err := program(p, devices); err != nil {
		return err
	}
	return errors.Join(streams.CloseAll(devices), platform.Close())
}

// overNetwork runs the program with messages over the network in the variable, if set.
func (program onDevices) overNetwork(p *mpi.Processes) error {
	return onDevices(func(p *mpi.Processes, devices []*streams.Device) (err error) {
		n := mpi.Network(os.Getenv(networkVariable))
		if n == mpi.NCCL {
			err = p.TryNCCL(context.Background(), devices[0])
		}
		if err == nil && n != "" {
			err = p.Use(n, n)
		}
		if err != nil {
			return err
		}
		return program(p, devices)
	}).run(p)
}

// tryNCCL prints the result of trying NCCL. Processes continue afterwards.
func tryNCCL(p *mpi.Processes, devices []*streams.Device) error {
	err := p.TryNCCL(context.Background(), devices[p.Rank%2])
	fmt.Println("tried:", err, p.NCCL())
	if refused := p.Use(mpi.Pieces, mpi.NCCL); (refused != nil) != (err != nil) {
		return fmt.Errorf("network nccl: %v, and then %v", err, refused)
	}
	return errors.Join(together(p), p.Disconnect(), together(p))
}

// oneWay makes rank 1 send a message to rank 0 many times.
func oneWay(p *mpi.Processes, devices []*streams.Device) error {
	if p.Rank == 0 {
		return receive(p, devices[0], 100, 1, 1, 5)
	}
	return send(p, devices[0], 100, 0, 1, 5)
}

// killed ends the last rank while the others wait for its messages.
func killed(p *mpi.Processes, devices []*streams.Device) error {
	last := p.Size() - 1
	if p.Rank == last {
		os.Exit(7)
	}
	return receive(p, devices[0], 100, last, 1, 5)
}

// tryDevice prints the result of trying MPI with device memory. Processes continue afterwards.
func tryDevice(p *mpi.Processes, devices []*streams.Device) error {
	fmt.Println("tried:", p.TryDevice(context.Background(), devices[p.Rank%2], os.Getenv(insistVariable) != ""))
	return errors.Join(together(p))
}

// otherLimits joins with a different limit than the other processes.
func otherLimits() error {
	_, err := mpi.Join(context.Background(), mpi.Options{Limit: testmpi.Limit() + time.Duration(os.Getpid())})
	return err
}

// together compares the properties of the processes with the expected ones: here all are on one host.
func together(p *mpi.Processes) error {
	ctx := context.Background()
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	for rank := range p.Size() {
		if p.Nodes[rank] != 0 || p.Locals[rank] != rank || p.Hosts[rank] != host {
			return fmt.Errorf("rank %d: got host %q, number %d, index %d; this host is %q", rank, p.Hosts[rank], p.Nodes[rank], p.Locals[rank], host)
		}
	}
	if index, count := p.Local(); index != p.Rank || count != p.Size() {
		return fmt.Errorf("got index %d of %d on this host", index, count)
	}
	for round := range 20 {
		all, err := mpi.Gather(ctx, p, "numbers", []byte(strings.Repeat("x", p.Rank*round)))
		if err != nil {
			return err
		}
		for rank, b := range all {
			if len(b) != rank*round {
				return fmt.Errorf("round %d: got %d bytes of rank %d", round, len(b), rank)
			}
		}
		root := round % p.Size()
		got, err := mpi.Broadcast(ctx, p, "a name", []byte(fmt.Sprint("by ", p.Rank, round)), root)
		if err != nil || string(got) != fmt.Sprint("by ", root, round) {
			return fmt.Errorf("round %d: Broadcast: got %q: %w", round, got, err)
		}
	}
	return tags(p)
}

func tags(p *mpi.Processes) error {
	first, err := p.Tags(10)
	if err != nil {
		return err
	}
	second, err := p.Tags(5)
	if err != nil || second < first+10 {
		return fmt.Errorf("got tags %d, then %d: %w", first, second, err)
	}
	if _, err := p.Tags(1 << 40); err == nil {
		return errors.New("2^40 tags")
	}
	return nil
}

// lengths of messages: shorter than a piece, equal, several pieces, odd.
var lengths = []int64{1, 63, 64, 65, 128, 129, 256, 257, 1000, 4096}

// content is the data that one rank sends to another in a round.
func content(n int64, from, to, index, round int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(7*i + 31*from + 17*to + 13*index + 101*round + i*i/251)
	}
	return b
}

// messages makes each process send messages of all lengths to all others many times, each by a separate goroutine.
func messages(p *mpi.Processes, devices []*streams.Device) error {
	first, err := p.Tags(len(lengths))
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	errs := make([]error, 2*len(lengths)*p.Size())
	for i, n := range lengths {
		for other := range p.Size() {
			if other == p.Rank {
				continue
			}
			d, at := devices[(i+other)%2], 2*(i*p.Size()+other)
			group.Go(func() { errs[at] = send(p, d, n, other, first+i, i) })
			group.Go(func() { errs[at+1] = receive(p, d, n, other, first+i, i) })
		}
	}
	group.Wait()
	return errors.Join(append(errs, p.Disconnect())...)
}

const rounds = 15

func send(p *mpi.Processes, d *streams.Device, n int64, to, tag, index int) (err error) {
	e, err := newEnd(d, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.open.Close()) }()
	t, err := p.NewSender(e.field.All(), to, tag, fmt.Sprintf("message %d to %s", index, p.Name(to)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for round := range rounds {
		copy(e.host.Bytes(), content(n, p.Rank, to, index, round))
		if err := t.Ready(e.group, e.stream); err != nil {
			return err
		}
		if err := errors.Join(e.stream.Copy(e.field.All(), e.host.All()), t.Send(e.stream), e.stream.Sync(testLimit)); err != nil {
			return err
		}
	}
	return nil
}

func receive(p *mpi.Processes, d *streams.Device, n int64, from, tag, index int) (err error) {
	e, err := newEnd(d, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.open.Close()) }()
	t, err := p.NewReceiver(e.field.All(), from, tag, fmt.Sprintf("message %d from %s", index, p.Name(from)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for round := range rounds {
		t.Expect(e.stream)
		if err := t.Receive(e.group, e.stream); err != nil {
			return err
		}
		if err := errors.Join(e.stream.Copy(e.host.All(), e.field.All()), t.Done(e.stream), e.stream.Sync(testLimit)); err != nil {
			return err
		}
		if want := content(n, from, p.Rank, index, round); !bytes.Equal(e.host.Bytes(), want) {
			return fmt.Errorf("round %d, %d bytes from rank %d: got %x, want %x", round, n, from, e.host.Bytes(), want)
		}
	}
	return nil
}

// end is the side of a message on a device in a test.
type end struct {
	field, host *streams.Memory
	stream      *streams.Stream
	group       *streams.WorkerGroup
	open        streams.Resources
}

func newEnd(d *streams.Device, n int64) (e *end, err error) {
	e = &end{group: streams.NewWorkerGroup(100, testLimit)}
	if e.field, err = d.Alloc(n); err != nil {
		return nil, err
	}
	if e.host, err = d.AllocPinned(n); err != nil {
		return nil, err
	}
	e.stream, err = d.NewStream(streams.Normal)
	e.open.Add(e.field, e.host, e.stream)
	return e, err
}

// agree is called with no failing process, then with two.
func agree(p *mpi.Processes) error {
	ctx := context.Background()
	if err := p.Agree(ctx, "nothing", nil); err != nil {
		return err
	}
	var mine error
	if p.Rank > 0 {
		mine = fmt.Errorf("no device %d", p.Rank)
	}
	err := p.Agree(ctx, "open the devices", mine)
	for rank := 1; rank < p.Size(); rank++ {
		want := fmt.Sprintf("no device %d", rank)
		if rank != p.Rank {
			want = fmt.Sprintf("%s: %s", p.Name(rank), want)
		}
		if err == nil || !slices.Contains(strings.Split(err.Error(), "\n"), want) {
			return fmt.Errorf("error must contain %q, got %w", want, err)
		}
	}
	small, large := errors.New("small"), errors.New("large")
	kinds := []error{small, large}
	for _, c := range []struct {
		rank0, others, want error
		own                 bool // rank 0 gets its own error
	}{
		{rank0: nil, others: nil, want: nil},
		{rank0: small, others: nil, want: small, own: true},
		{rank0: small, others: large, want: large},
		{rank0: large, others: large, want: large, own: true},
		{rank0: context.Canceled, others: large, want: context.Canceled, own: true},
		{rank0: large, others: context.Canceled, want: context.Canceled},
	} {
		mine := c.rank0
		if p.Rank > 0 {
			mine = c.others
		}
		err := p.Agree(ctx, "choose", mine, kinds...)
		if !errors.Is(err, c.want) || c.own && p.Rank == 0 && err != c.rank0 {
			return fmt.Errorf("%v on rank 0 and %v on others: %w, want %v", c.rank0, c.others, err, c.want)
		}
	}
	if mine = small; p.Rank > 0 {
		mine = errors.New("unknown")
	}
	err = p.Agree(ctx, "choose", mine, kinds...)
	if err == nil || errors.Is(err, small) || !strings.Contains(err.Error(), "unknown") {
		return fmt.Errorf("an unknown error must be the worst, got %w", err)
	}
	return p.Err() // an error known to all is not a failure of the processes
}

// fails makes the last rank fail while the others wait for it.
func fails(p *mpi.Processes) error {
	ctx := context.Background()
	if _, err := mpi.Gather(ctx, p, "all", 0); err != nil {
		return err
	}
	last := p.Size() - 1
	if p.Rank == last {
		time.Sleep(200 * time.Millisecond)
		return errors.New("the disk is full")
	}
	_, err := mpi.Gather(ctx, p, "results", 0)
	e, ok := errors.AsType[*mpi.RemoteError](err)
	if !ok || e.Rank != last || !strings.Contains(e.Text, "the disk is full") || p.Context().Err() == nil {
		return fmt.Errorf("another error: %w", err)
	}
	return err
}

// stopped stops a process, as if its host failed. All others wait, also for each other.
func stopped(p *mpi.Processes, who int) error {
	ctx := context.Background()
	if _, err := mpi.Gather(ctx, p, "all", 0); err != nil {
		return err
	}
	if p.Rank == who {
		err := syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(10 * time.Minute) // other threads may stop slightly later than requested
		return err
	}
	_, err := mpi.Gather(ctx, p, "results", 0)
	return err
}

// hangs makes the last rank send nothing, although it runs.
func hangs(p *mpi.Processes, devices []*streams.Device) error {
	last := p.Size() - 1
	if p.Rank == last {
		<-p.Context().Done()
		return context.Cause(p.Context())
	}
	return receive(p, devices[0], 100, last, 1, 5)
}

// firstAlone makes all but the last rank call First.
func firstAlone(p *mpi.Processes) error {
	if p.Rank == p.Size()-1 {
		<-p.Context().Done()
		return context.Cause(p.Context())
	}
	_, err := p.First(context.Background(), p.Size()-1)
	return err
}

// duplicated uses a group and its duplicate at once, in different orders. In the duplicate rank 0 waits for longer
// than the limit of the group.
func duplicated(p *mpi.Processes) error {
	ctx, held := context.Background(), make(chan struct{})
	d, err := p.Duplicate(ctx, testLimit)
	if err != nil {
		return err
	}
	background := make(chan error, 1)
	go func() {
		if p.Rank > 0 {
			<-held
		}
		all, err := mpi.Gather(ctx, d, "files", p.Rank)
		if err == nil && !slices.Equal(all, []int{0, 1, 2}[:p.Size()]) {
			err = fmt.Errorf("got %v", all)
		}
		to, from := []byte(fmt.Sprint("by ", p.Rank)), make([]byte, 4)
		if p.Rank == 1 {
			err = errors.Join(err, d.SendBytes(ctx, "bytes", to, 0))
		}
		if p.Rank == 0 {
			if err = errors.Join(err, d.ReceiveBytes(ctx, "bytes", from, 1)); string(from) != "by 1" {
				err = errors.Join(err, fmt.Errorf("got %q", from))
			}
		}
		background <- err
	}()
	over := make([]bool, 1)
	for began := time.Now(); !over[0]; {
		if over, err = mpi.Gather(ctx, p, "over", time.Since(began) > p.Limit()+p.Limit()/4); err != nil {
			return err
		}
	}
	close(held)
	return errors.Join(<-background, d.Close(), d.Close())
}

// failsBehind makes the last rank fail in a duplicate while the others wait in the group.
func failsBehind(p *mpi.Processes) error {
	d, err := p.Duplicate(context.Background(), testLimit)
	if err != nil {
		return err
	}
	if p.Rank == p.Size()-1 {
		return errors.Join(d.Fail(errors.New("the device is lost")), d.Close())
	}
	_, err = mpi.Gather(context.Background(), p, "results", 0)
	return errors.Join(err, d.Close())
}

// mismatch makes processes call different functions: the first gathers, the second broadcasts, the third ends.
func mismatch(p *mpi.Processes) error {
	ctx := context.Background()
	calls := []func() error{
		func() error { _, err := mpi.Gather(ctx, p, "results", make([]byte, 100)); return err },
		func() error { _, err := mpi.Broadcast(ctx, p, "a name", []byte("x"), 1); return err },
		p.Close,
	}
	if err := calls[p.Rank](); err != nil {
		return err
	}
	return errors.New("collective calls that differ: got no error")
}

// leaves ends the last rank without notifying the others.
func leaves(p *mpi.Processes) error {
	if p.Rank == p.Size()-1 {
		os.Exit(7)
	}
	_, err := mpi.Gather(context.Background(), p, "results", 0)
	return err
}

// misuse makes invalid calls.
func misuse(p *mpi.Processes) error {
	platform := streams.HostPlatform(1)
	devices, err := platform.Open()
	if err != nil {
		return err
	}
	m, err := devices[0].Alloc(100)
	if err != nil {
		return err
	}
	for _, other := range []int{p.Rank, -1, p.Size()} {
		if _, err := p.NewSender(m.All(), other, 0, "nothing"); err == nil {
			return fmt.Errorf("a message to rank %d: got no error", other)
		}
	}
	other := (p.Rank + 1) % p.Size()
	if _, err := p.NewReceiver(streams.Span{}, other, 0, "nothing"); err == nil {
		return errors.New("a message without memory: got no error")
	}
	t, err := p.NewReceiver(m.All(), other, 0, "never sent")
	if err != nil {
		return err
	}
	return errors.Join(t.Close(), t.Close(), streams.CloseAll(devices), platform.Close(), p.Close(), p.Close(), afterwards(p))
}

// afterwards calls methods of closed processes, which return errors or have no effect.
func afterwards(p *mpi.Processes) error {
	p.Abort(3)
	if err := p.Agree(context.Background(), "go on", nil); err == nil || !strings.Contains(err.Error(), "mpi: go on: the processes are closed") {
		return fmt.Errorf("after Close: got %w", err)
	}
	return nil
}
