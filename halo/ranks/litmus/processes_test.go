//go:build unix

package litmus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

func TestMain(m *testing.M) {
	testmpi.Main(m, map[string]func() error{
		"litmus": asOneOf(hold),
		"faults": asOneOf(faultsAreFound),
	})
}

// asOneOf runs a program as one of several processes, with two host devices of its own.
func asOneOf(program func(t Tests, devices []*streams.Device) error) func() error {
	return func() error {
		ctx := context.Background()
		p, err := mpi.Join(ctx, mpi.Options{Limit: 30 * time.Second})
		if err != nil || p.IsAlone() {
			return fmt.Errorf("alone: %w", err)
		}
		platform := streams.HostPlatform(2)
		devices, err := platform.Open()
		if err != nil {
			return err
		}
		links, err := p2p.Discover(ctx, devices, nil)
		if err != nil {
			return err
		}
		err = program(Tests{Links: links, Processes: p, Limit: 20 * time.Second}, devices)
		if err = errors.Join(err, streams.CloseAll(devices), platform.Close()); err == nil {
			err = p.Close()
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "<rank %d: %v>\n", p.Rank, err)
			err = errors.Join(p.Fail(err), p.Close())
			p.Abort(3)
			return err
		}
		fmt.Printf("rank %d of %d done\n", p.Rank, p.Size())
		return nil
	}
}

// hold runs all tests, on one device of each process and on two, with one rank on each and with several. Where
// processes share cores a round takes long: they make all rounds if tests are long.
func hold(t Tests, devices []*streams.Device) error {
	if !testdevices.Long() {
		t.Rounds = 40
	}
	for n := 1; n <= len(devices); n++ {
		for _, t.Ranks = range []int{1, 4} {
			for _, k := range kinds {
				if err := k.run(t, context.Background(), devices[:n]...); err != nil {
					return fmt.Errorf("%s, %d devices of each process, %d ranks: %w", k.name, n, t.Ranks, err)
				}
			}
		}
	}
	return nil
}

// faultsAreFound has rank 0, of the first process, do what it must not. All processes learn of it.
func faultsAreFound(t Tests, devices []*streams.Device) error {
	t.Ranks, t.Limit = 2, time.Second
	for _, c := range []struct {
		kind  int
		fault int64
		is    error
		says  string
	}{
		{0, flipped, errWrong, " has 0x"},
		{0, dropped, ranks.ErrTimeout, " waited 1s "},
		{2, flipped, errWrong, " left barrier 6 and saw 6 of rank 0 ("},
		{3, dropped, ranks.ErrTimeout, " waited 1s "},
	} {
		t.fault, t.where = c.fault, 6
		err := kinds[c.kind].run(t, context.Background(), devices[:1]...)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			return fmt.Errorf("%s, fault %d: %w", kinds[c.kind].name, c.fault, err)
		}
		if c.is == ranks.ErrTimeout && !errors.Is(err, c.is) {
			return fmt.Errorf("%w is no %v", err, c.is)
		}
	}
	return nil
}

// All litmus tests hold among the devices of several processes, and find faults there.
func TestProcesses(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for program, ranks := range map[string][]int{"litmus": {2, 4}, "faults": {4, 2}} {
			for _, n := range testdevices.Some(1, ranks) {
				t.Run(fmt.Sprintf("%s/%d", program, n), func(t *testing.T) {
					r := in.Run(t, testmpi.Job{Program: program, Ranks: n, Limit: 200 * time.Second})
					r.Succeeds(t)
					if done := strings.Count(r.Out, fmt.Sprintf(" of %d done", n)); done != n {
						t.Errorf("%d ranks are done:\n%s", done, r.Out)
					}
				})
			}
		}
	})
}
