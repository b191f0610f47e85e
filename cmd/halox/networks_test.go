//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/nccl/ncclfake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/results"
)

// overNetworks has two processes on a periodic axis, which have two messages each way.
const overNetworks = `
solver: heat
grid: {size: [24, 11, 10]}
boundary: {x: periodic}
initial: x*y + z*(1 - z)
stop: {iterations: 20, check_every: 10}
devices: {backend: cuda}
exchange: {scheme: assisted}
`

// Over each network the field is that of one process, and the record says which it was. Plan tries them, and says what came of it.
func TestLaunchedNetworks(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	testdevices.Once(t)
	config := write(t, "c.yaml", overNetworks)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		env := append(testdevices.Environment(t, 2), "HALOX_NCCL="+ncclfake.Build(t))
		field := func(ranks int, set ...string) ([]byte, results.Record) {
			file, record := filepath.Join(t.TempDir(), "u.npy"), filepath.Join(t.TempDir(), "r.json")
			args := []string{"run", config, "-q", "--record", record, "--set", "output.field=" + file}
			for _, s := range set {
				args = append(args, "--set", s)
			}
			launchHalox(t, in, ranks, env, args...).Succeeds(t)
			r := test.Must(results.Read(record))(t)
			return content(t, file), *r
		}
		want, _ := field(1)
		for _, n := range testdevices.Some(2, []struct{ name, carrier string }{{"ipc", "CUDA IPC"}, {"mpi", ""}, {"mpi-device", ""}, {"nccl", "NCCL 2.27.5 over FAKE/SOCKET"}}) {
			got, r := field(2, "exchange.network="+n.name)
			if string(got) != string(want) {
				t.Errorf("network %s: another field", n.name)
			}
			if len(r.Networks) != 1 || r.Networks[0].Name != n.name || r.Networks[0].Between != "processes" || !strings.Contains(r.Networks[0].Carrier, n.carrier) {
				t.Errorf("network %s: the record has %+v", n.name, r.Networks)
			}
		}
		r := in.Run(t, testmpi.Job{Program: "halox", Ranks: 2, Env: append(env, argumentsVariable+"=plan\n"+config)})
		r.Succeeds(t)
		for _, want := range []string{"; network ", ": packed on the device, ", "networks between processes", "does not report support for device memory", "GB/s"} {
			if !strings.Contains(r.Out, want) {
				t.Errorf("plan does not say %q:\n%s", want, r.Out)
			}
		}
		launchHalox(t, in, 2, env, "run", config, "--set", "devices.backend=host", "--set", "exchange.network=nccl").
			Fails(t, "exchange.network: nccl: mpi: CPU devices have no device memory")
	})
}
