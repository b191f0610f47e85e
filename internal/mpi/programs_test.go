//go:build unix

package mpi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/internal/testmpi"
)

// limit is how long anything may take that is to succeed.
const limit = 5 * time.Minute

func TestMain(m *testing.M) {
	testmpi.Main(m, map[string]func() error{
		"exchanges":   inWorld(exchanges),
		"large":       inWorld(largeMessages),
		"collectives": inWorld(collectives),
		"misuse":      inWorld(misuse),
		"signals":     signals,
		"lent":        lent,
		"killed":      inWorld(killed),
		"hanging":     inWorld(hanging(receivesFromRank1)),
		"alone":       inWorld(hanging(copies)),
		"split":       inWorld(hanging(splitsAlone)),
		"absent":      absent,
	})
}

// open opens the library that the test has named, as a program does.
func open() (*mpi.Library, mpi.Launcher, error) {
	launcher, ok, err := mpi.FindLauncher(os.LookupEnv)
	if err != nil || !ok {
		return nil, launcher, fmt.Errorf("no launcher: %v", err)
	}
	l, err := mpi.Open(os.Getenv(mpi.Variable), launcher)
	return l, launcher, err
}

// inWorld starts MPI, runs a program and ends MPI.
func inWorld(program func(*mpi.Comm) error) func() error {
	return func() error {
		l, launcher, err := open()
		if err != nil {
			return err
		}
		ctx := context.Background()
		c, err := l.Init(ctx, limit)
		if err != nil {
			return err
		}
		if err := launcher.Check(c.Size(), l.String()); err != nil {
			return err
		}
		if err := program(c); err != nil {
			return fmt.Errorf("rank %d: %w", c.Rank(), err)
		}
		fmt.Printf("rank %d of %d done, %s\n", c.Rank(), c.Size(), l.Family)
		return errors.Join(c.Free(), l.Finalize(ctx, limit))
	}
}

// content fills what one rank sends another in a round of one goroutine.
func content(b []byte, from, to, goroutine, round int) []byte {
	r := rand.New(rand.NewPCG(uint64(from)<<32|uint64(to), uint64(goroutine)<<32|uint64(round)))
	for i := 0; i < len(b); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(b[i:], word[:])
	}
	return b
}

// swap sends bytes to one rank, and receives some from another.
func swap(c *mpi.Comm, out, in []byte, to, from, tag int) error {
	var send, receive mpi.Request
	if err := errors.Join(c.Irecv(&receive, in, from, tag), c.Isend(&send, out, to, tag)); err != nil {
		return err
	}
	return errors.Join(receive.Wait(context.Background(), limit), send.Wait(context.Background(), limit))
}

// exchanges has 4 goroutines of each rank exchange messages of random lengths with partners
// that change, while others make the collector run.
func exchanges(c *mpi.Comm) error {
	const goroutines, rounds, most = 4, 60, 20000
	var over atomic.Bool
	var collector sync.WaitGroup
	collector.Go(func() {
		for !over.Load() {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	})
	errs := make([]error, goroutines)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() { errs[g] = exchangeAll(c, g, rounds, most) })
	}
	group.Wait()
	over.Store(true)
	collector.Wait()
	return errors.Join(errs...)
}

func exchangeAll(c *mpi.Comm, goroutine, rounds, most int) error {
	out, err := mpi.NewMemory(most)
	if err != nil {
		return err
	}
	defer out.Free()
	in, err := mpi.NewMemory(most)
	if err != nil {
		return err
	}
	defer in.Free()
	for round := range rounds {
		plan := rand.New(rand.NewPCG(uint64(goroutine), uint64(round))) // the same on all ranks
		shift, length := plan.IntN(c.Size()), plan.IntN(most)
		to, from := (c.Rank()+shift)%c.Size(), (c.Rank()-shift+c.Size())%c.Size()
		clear(in.Bytes)
		content(out.Bytes[:length], c.Rank(), to, goroutine, round)
		if err := swap(c, out.Bytes[:length], in.Bytes, to, from, goroutine); err != nil {
			return err
		}
		want := content(make([]byte, length), from, c.Rank(), goroutine, round)
		if !bytes.Equal(in.Bytes[:length], want) || in.Bytes[length] != 0 {
			return fmt.Errorf("goroutine %d, round %d: %d bytes from rank %d are wrong", goroutine, round, length, from)
		}
	}
	return nil
}

// largeMessages sends 40 MB round the ring, whole and in pieces.
func largeMessages(c *mpi.Comm) error {
	const size = 40_000_001
	out, err := mpi.NewMemory(size)
	if err != nil {
		return err
	}
	defer out.Free()
	in, err := mpi.NewMemory(size)
	if err != nil {
		return err
	}
	defer in.Free()
	to, from := (c.Rank()+1)%c.Size(), (c.Rank()-1+c.Size())%c.Size()
	for i, most := range []int{1 << 30, 1 << 20, 7_000_000} {
		c.Library().SetMost(most)
		clear(in.Bytes)
		content(out.Bytes, c.Rank(), to, 0, i)
		if err := swap(c, out.Bytes, in.Bytes, to, from, 5); err != nil {
			return err
		}
		if !bytes.Equal(in.Bytes, content(make([]byte, size), from, c.Rank(), 0, i)) {
			return fmt.Errorf("pieces of %d: wrong bytes", most)
		}
	}
	return nil
}

func collectives(c *mpi.Comm) error {
	ctx := context.Background()
	for round := range 5 {
		if err := c.Barrier(ctx, limit); err != nil {
			return err
		}
		root := round % c.Size()
		given := content(make([]byte, 1000*c.Rank()), c.Rank(), root, 0, round)
		want := content(make([]byte, 1000*root), root, root, 0, round)
		if round == 3 {
			c.Library().SetMost(1003) // of a message, an odd part
		}
		got, err := c.Broadcast(ctx, limit, given, root)
		if err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("broadcast %d: %d bytes, want %d: %w", round, len(got), len(want), err)
		}
		c.Library().SetMost(1 << 30)
		all, err := c.Allgather(ctx, limit, given)
		if err != nil {
			return err
		}
		for rank, b := range all {
			if !bytes.Equal(b, content(make([]byte, 1000*rank), rank, root, 0, round)) {
				return fmt.Errorf("allgather %d: of rank %d %d bytes", round, rank, len(b))
			}
		}
	}
	return splits(c)
}

// splits cuts the ranks into odd and even ones, in reverse order.
func splits(c *mpi.Comm) error {
	half, err := c.Split(context.Background(), limit, c.Rank()%2, -c.Rank())
	if err != nil {
		return err
	}
	size := (c.Size() + 1 - c.Rank()%2) / 2
	if half.Size() != size || half.Rank() != size-1-c.Rank()/2 {
		return fmt.Errorf("rank %d of %d among every other", half.Rank(), half.Size())
	}
	name, err := c.Library().HostName()
	if err != nil || name == "" {
		return fmt.Errorf("host %q: %w", name, err)
	}
	return errors.Join(half.Free(), half.Free())
}

// misuse is what must come back as an error, and leaves the communicator usable.
func misuse(c *mpi.Comm) error {
	m, err := mpi.NewMemory(100)
	if err != nil {
		return err
	}
	defer m.Free()
	var r mpi.Request
	e, ok := errors.AsType[*mpi.Error](c.Isend(&r, m.Bytes, c.Size()+5, 3))
	if !ok || e.Call != "MPI_Isend" || e.Text == "" || e.With != fmt.Sprintf("to rank %d, tag 3", c.Size()+5) {
		return fmt.Errorf("a message to no rank: %v", e)
	}
	if most, err := c.LargestTag(); err != nil || most < 32767 || most > 1<<31-1 {
		return fmt.Errorf("tags up to %d: %w", most, err)
	}
	if err := truncated(c, m); err != nil {
		return err
	}
	var early mpi.Request
	if err := c.Irecv(&early, m.Bytes, 0, 99); err != nil {
		return err
	}
	if err := c.Irecv(&early, m.Bytes, 0, 0); err == nil {
		return errors.New("a request was begun twice")
	}
	err = early.Wait(context.Background(), 50*time.Millisecond)
	late, ok := errors.AsType[*mpi.LateError](err)
	if !ok || !errors.Is(err, mpi.ErrLate) || late.Call != "MPI_Irecv" || late.With != "from rank 0, tag 99" {
		return fmt.Errorf("a receive of nothing: %v", err)
	}
	if err := early.Cancel(); err != nil {
		return err
	}
	if err := early.Wait(context.Background(), limit); err != nil {
		return fmt.Errorf("a receive that was given up: %w", err)
	}
	return c.Barrier(context.Background(), limit)
}

// truncated sends each rank more than it has room for.
func truncated(c *mpi.Comm, m *mpi.Memory) error {
	var send, receive mpi.Request
	to, from := (c.Rank()+1)%c.Size(), (c.Rank()-1+c.Size())%c.Size()
	if err := errors.Join(c.Irecv(&receive, m.Bytes[50:60], from, 1), c.Isend(&send, m.Bytes[:50], to, 1)); err != nil {
		return err
	}
	e, ok := errors.AsType[*mpi.Error](receive.Wait(context.Background(), limit))
	if !ok || e.Call != "MPI_Irecv" || e.With != fmt.Sprintf("from rank %d, tag 1", from) {
		return fmt.Errorf("50 bytes in place of 10: %v", e)
	}
	return send.Wait(context.Background(), limit)
}

// lent starts MPI as a program of the user's, and lends its communicator.
func lent() error {
	l, _, err := open()
	if err != nil {
		return err
	}
	if _, err := l.Lend(context.Background(), limit, 0x44000000); err == nil {
		return errors.New("a communicator was lent before MPI was started")
	}
	runtime.LockOSThread()
	world, err := l.StartAsUser()
	if err != nil {
		return err
	}
	again, err := mpi.Open("", mpi.Launcher{})
	if err != nil || again.Family != l.Family {
		return fmt.Errorf("the library that is in the process: %v, %w", again, err)
	}
	c, err := again.Lend(context.Background(), limit, world)
	if err != nil {
		return err
	}
	if _, err := again.Lend(context.Background(), limit, 0); err == nil {
		return errors.New("no communicator was lent")
	}
	if err := exchanges(c); err != nil {
		return err
	}
	if err := errors.Join(c.Free(), again.Finalize(context.Background(), limit)); err != nil {
		return err
	}
	// The user's own MPI goes on.
	other, err := l.Lend(context.Background(), limit, world)
	if err != nil {
		return fmt.Errorf("after the first loan: %w", err)
	}
	fmt.Printf("rank %d of %d done, %s\n", other.Rank(), other.Size(), l.Family)
	if err := errors.Join(other.Barrier(context.Background(), limit), other.Free(), l.EndAsUser()); err != nil {
		return err
	}
	if _, err := l.Lend(context.Background(), limit, world); err == nil {
		return errors.New("a communicator was lent after MPI had ended")
	}
	return nil
}

// killed has rank 1 die. The others wait for it.
func killed(c *mpi.Comm) error {
	if err := c.Barrier(context.Background(), limit); err != nil {
		return err
	}
	if c.Rank() == 1 {
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return hanging(receivesFromRank1)(c)
}

// hanging has rank 1 do nothing any more. The others make a call that waits for it, and then end it.
func hanging(call func(c *mpi.Comm) error) func(c *mpi.Comm) error {
	return func(c *mpi.Comm) error {
		if c.Rank() == 1 {
			time.Sleep(10 * time.Minute)
		}
		err := call(c)
		fmt.Fprintln(os.Stderr, err)
		time.Sleep(500 * time.Millisecond) // MPICH's launcher loses what it has not passed on before an abort
		return errors.Join(err, c.Library().Abort(3))
	}
}

func copies(c *mpi.Comm) error {
	_, err := c.Dup(context.Background(), testmpi.Limit())
	return err
}

// splitsAlone makes a call that blocks: MPI has none to split that does not.
func splitsAlone(c *mpi.Comm) error {
	_, err := c.Split(context.Background(), testmpi.Limit(), 0, c.Rank())
	return err
}

func receivesFromRank1(c *mpi.Comm) error {
	m, err := mpi.NewMemory(8)
	if err != nil {
		return err
	}
	var r mpi.Request
	if err := c.Irecv(&r, m.Bytes, 1, 77); err != nil {
		return err
	}
	return r.Wait(context.Background(), testmpi.Limit())
}

// absent expects that the library that is named cannot be had.
func absent() error {
	l, launcher, err := open()
	if err != nil {
		return err
	}
	if err := launcher.Suits(l); err != nil {
		return err
	}
	ctx := context.Background()
	c, err := l.Init(ctx, limit)
	if err != nil {
		return err
	}
	return errors.Join(launcher.Check(c.Size(), l.String()), l.Finalize(ctx, limit))
}
