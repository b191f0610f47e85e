//go:build unix

package datatypes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench/trial"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

func TestMain(m *testing.M) {
	testmpi.Main(m, map[string]func() error{
		"ping":  testmpi.AsOne(mpi.Options{Limit: 5 * time.Minute}, onOneEach(pingPair)),
		"stops": testmpi.AsOne(mpi.Options{Limit: testmpi.Limit()}, onOneEach(stopsPinging)),
	})
}

// onOneEach is a program of two processes with a device each.
func onOneEach(program func(r *pingRun, open *streams.Resources) error) func(p *mpi.Processes) error {
	return func(p *mpi.Processes) (err error) {
		platform, err := testdevices.Launched(2)
		if err != nil {
			return err
		}
		devices, err := platform.Open(p.Rank)
		if err != nil {
			return err
		}
		r := &pingRun{compiler: kernels.CompilerFromEnv(), check: true, budget: time.Microsecond, processPair: processPair{processes: p, device: devices[0], maps: true}, channels: []channel{
			{path: pathIPC, by: byUnits}, {path: pathIPC, by: byUnits, remote: true}, {path: p2p.MPI, by: byUnits},
		}}
		*[]**streams.Device{&r.from, &r.to}[p.Rank] = devices[0]
		var open streams.Resources
		err = errors.Join(r.meet(context.Background()), program(r, &open), open.Close())
		if err != nil {
			return err
		}
		return errors.Join(p.Disconnect(), streams.CloseAll(devices), platform.Close())
	}
}

// oddWorkloads are of odd lengths, with gaps, at other places at both ends.
func oddWorkloads() ([]workloads.Workload, error) {
	vector, err1 := datatype.Vector(37, 3, 7, datatype.Float64)
	blocks, err2 := datatype.Indexed([]int{1, 40, 3, 67}, []int{5, 9, 60, 70}, datatype.Float64)
	bytes, err3 := datatype.HIndexed([]int{7, 1, 130, 9}, []int64{3, 11, 13, 151}, datatype.Byte)
	side := func(t *datatype.Type, origin int64) workloads.Side {
		return workloads.Side{Type: t, Count: 1, Origin: origin, Array: origin + t.TrueUB() + 13}
	}
	return []workloads.Workload{
		{Suite: "odd", Name: "vector", Bytes: vector.Size(), Send: side(vector, 24), Recv: side(blocks, 8)},
		{Suite: "odd", Name: "bytes", Bytes: bytes.Size(), Send: side(bytes, 5), Recv: side(bytes, 0)},
	}, errors.Join(err1, err2, err3)
}

// pingPair sends the workloads in fragments of several sizes, some shorter than an element, and finds wrong bytes.
func pingPair(r *pingRun, open *streams.Resources) error {
	ctx := context.Background()
	all, err := oddWorkloads()
	if err != nil {
		return err
	}
	for _, r.transfer = range []packing.TransferOptions{{Fragment: 5, Ring: 1}, {Fragment: 101, Ring: 3}} {
		for _, w := range all {
			c := &pingCase{pingRun: r, open: open}
			rows, err := c.measureAll(ctx, w)
			if err != nil || len(rows) != len(r.channels) {
				return fmt.Errorf("%v, %+v: %d rows: %w", w, r.transfer, len(rows), err)
			}
			for _, row := range rows {
				inRing := row.Text("path") == string(pathIPC)
				if !row.Checked || inRing != (row.Text("fragment") != "") {
					return fmt.Errorf("%v: %+v", w, row)
				}
			}
			for i, end := range []*trial.Trial{c.ping, c.pong} {
				says := []string{"there", "back"}[i]
				end.Want()[w.Bytes/2] ^= 1
				for _, l := range r.channels {
					if _, _, err := c.measure(ctx, l); err == nil || !strings.Contains(err.Error(), says+": ") ||
						!strings.Contains(err.Error(), fmt.Sprintf("byte %d of ", w.Bytes/2)) {
						return fmt.Errorf("%v by %v: a wrong byte %s: %v", w, l, says, err)
					}
				}
				end.Want()[w.Bytes/2] ^= 1
			}
		}
	}
	return nil
}

// stopsPinging stops rank 1 between two messages, as if it hung.
func stopsPinging(r *pingRun, open *streams.Resources) error {
	all, err := oddWorkloads()
	if err != nil {
		return err
	}
	c := &pingCase{pingRun: r, open: open}
	err = c.prepare(all[0])
	for err == nil {
		_, _, err = c.measure(context.Background(), r.channels[0])
		if r.processes.Rank == 1 {
			err = errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGSTOP))
			time.Sleep(10 * time.Minute)
		}
	}
	return err
}

// The bytes of datatypes arrive over ipc and mpi, on CPU devices and on emulated GPUs, and wrong ones are found. A
// process that stops is named by the other one.
func TestLaunchedPingPong(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for i := range 4 { // by whether a rank stops, and on GPUs
			if !testdevices.Turn(i, 4, 4) {
				continue
			}
			t.Run(fmt.Sprintf("stops=%t,gpus=%t", i/2 > 0, i%2 > 0), func(t *testing.T) {
				job := testmpi.Job{Program: "stops", Ranks: 2}
				if i%2 > 0 {
					job.Env = testdevices.Environment(t, 2)
				}
				if i/2 > 0 {
					in.Fails(t, job, "<rank 0 after ", "mpi: no heartbeat from rank 1 on host ")
					return
				}
				job.Program = "ping"
				in.Done(t, job)
			})
		}
	})
}
