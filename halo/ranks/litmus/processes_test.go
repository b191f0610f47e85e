//go:build unix

package litmus

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

func TestMain(m *testing.M) {
	testmpi.Main(m, map[string]func() error{"litmus": testmpi.AsOne(mpi.Options{Limit: testLimit}, onHostDevices)})
}

// onHostDevices runs all tests on two CPU devices in each process.
func onHostDevices(p *mpi.Processes) error {
	platform := streams.HostPlatform(2)
	devices, err := platform.Open()
	if err != nil {
		return err
	}
	links, err := p2p.Discover(context.Background(), devices, nil)
	if err == nil {
		err = hold(Tests{Links: links, Processes: p, Limit: testLimit}, devices)
	}
	return errors.Join(err, streams.CloseAll(devices), platform.Close())
}

// hold runs all tests, on one device of each process and on two, with one rank on each and with several. A
// round takes long if processes share cores: only long tests run all rounds.
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
				in.Done(t, testmpi.Job{Program: "litmus", Ranks: n})
			})
		}
	})
}
