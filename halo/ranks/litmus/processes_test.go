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

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

func TestMain(m *testing.M) {
	testmpi.Main(m, map[string]func() error{
		"litmus": asOneOf(hold),
	})
}

// asOneOf runs a program as one of several processes, with two host devices of its own.
func asOneOf(program func(t Tests, devices []*streams.Device) error) func() error {
	return func() error {
		ctx := context.Background()
		p, err := mpi.Join(ctx, mpi.Options{Limit: time.Minute})
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
		err = program(Tests{Links: links, Processes: p, Limit: time.Minute}, devices)
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

// All litmus tests hold among the devices of several processes.
func TestProcesses(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, n := range testdevices.Some(1, []int{2, 4}) {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				r := in.Run(t, testmpi.Job{Program: "litmus", Ranks: n, Limit: 200 * time.Second})
				r.Succeeds(t)
				if done := strings.Count(r.Out, fmt.Sprintf(" of %d done", n)); done != n {
					t.Errorf("%d ranks are done:\n%s", done, r.Out)
				}
			})
		}
	})
}
