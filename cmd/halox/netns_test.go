//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/halox/halox/internal/forecast"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/internal/testnet"
	"github.com/halox/halox/results"
)

// wired is a grid whose subdomains are cubes of 32 points per side on 4 hosts.
const wired = `
solver: heat
grid: {size: [32, 64, 64]}
initial: sin(pi*x)*sin(pi*y)*sin(pi*z)
devices: {backend: host, count: 1}
stop: {iterations: 20}
`

// wireHalox runs a config over hosts, one process each, for so many steps. It returns the record, the field, and how many bytes
// each host has sent.
func wireHalox(t *testing.T, in testmpi.Installation, n *testnet.Net, config string, steps int, args ...string) (r *results.Record, field []byte, sent []int64) {
	t.Helper()
	folder := t.TempDir()
	u, record := filepath.Join(folder, "u.npy"), filepath.Join(folder, "r.json")
	args = append([]string{"run", config, "--record", record, "--set", "output.field=" + u, "--set", fmt.Sprint("stop.iterations=", steps)}, args...)
	var before []int64
	for _, h := range n.Hosts {
		before = append(before, h.Sent(t))
	}
	in.Run(t, n.Over(in, testmpi.Job{
		Program: "halox", Ranks: len(n.Hosts), Env: []string{argumentsVariable + "=" + strings.Join(args, "\n")},
	})).Succeeds(t)
	for i, h := range n.Hosts {
		sent = append(sent, h.Sent(t)-before[i])
	}
	r, err := results.Read(record)
	test.Check(t, err)
	return r, content(t, u), sent
}

// Hosts send the faces of their subdomains over their links, and little else: network headers and messages of
// coordination. The field is equal to that of one process.
func TestNetnsWire(t *testing.T) {
	const few, many, face = 20, 420, 32 * 32 * 8
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for hosts, faces := range map[int]int64{2: 2, 4: 2} { // a face of 2 hosts has twice the points
			t.Run(fmt.Sprint(hosts), func(t *testing.T) {
				n := testnet.New(t, hosts)
				config := write(t, "c.yaml", wired)
				_, _, base := wireHalox(t, in, n, config, few)
				r, field, sent := wireHalox(t, in, n, config, many)
				if !bytes.Equal(field, fieldAfter(t, config, many)) {
					t.Error("the field is another than that of one process")
				}
				seen := map[string]bool{}
				for _, d := range r.Devices {
					seen[d.Host] = true
				}
				if len(seen) != hosts || r.Run.Path != "mpi" {
					t.Errorf("on hosts %v by path %s", seen, r.Run.Path)
				}
				for i := range sent {
					step := float64(sent[i]-base[i]) / (many - few)
					want := float64(faces * face)
					t.Logf("%s sends %.0f bytes per step; its faces have %.0f", n.Hosts[i].Name, step, want)
					if step < want || step > 1.15*want {
						t.Errorf("%s sends %.0f bytes per step; its faces have %.0f", n.Hosts[i].Name, step, want)
					}
				}
			})
		}
	})
}

// Over a slow link a step takes what its faces do, and bench links finds the rate.
func TestNetnsSlowLink(t *testing.T) {
	const bits, steps, face = 40e6, 40, 64 * 32 * 8
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		n := testnet.New(t, 2)
		for _, h := range n.Hosts {
			h.Slow(t, bits)
		}
		config := write(t, "c.yaml", wired)
		want, step := fieldAfter(t, config, steps), math.Inf(1)
		least := face * 8 / bits * 1e3                   // ms
		for try := 0; try < 4 && step > 2*least; try++ { // the machine may have been busy
			r, field, _ := wireHalox(t, in, n, config, steps)
			if !bytes.Equal(field, want) {
				t.Error("the field is another than that of one process")
			}
			step = min(step, float64(*r.Run.LoopSeconds)/steps*1e3)
		}
		t.Logf("a step takes %.2f ms; its faces at least %.2f ms", step, least)
		if step < 0.7*least || step > 3*least { // the bucket lets some through at once
			t.Errorf("a step takes %.2f ms; its faces at least %.2f ms", step, least)
		}
		planned := in.Run(t, n.Over(in, testmpi.Job{Program: "halox", Ranks: 2, Env: []string{argumentsVariable + "=plan\n" + config}}))
		planned.Succeeds(t)
		said := regexp.MustCompile(`messages between hosts count as those between rank 0 on host node0 and rank 1 on host node1: .*, ([\d.]+) us for 512 KiB`).FindStringSubmatch(planned.Out)
		if said == nil {
			t.Fatalf("it does not say what messages between hosts take:\n%s", planned.Out)
		}
		if took, least := numberIn(t, said[1]), (512<<10)*8/bits*1e6; took < 0.8*least || took > 1.5*least {
			t.Errorf("plan says that 512 KiB take %.0f us; over the link they take %.0f us", took, least)
		}
		record, network := filepath.Join(t.TempDir(), "l.json"), filepath.Join(t.TempDir(), "n.yaml")
		args := []string{"bench", "links", "--backend", "host", "--sizes", "256KiB", "--modes", "one-way", "--record", record, "--network-file", network}
		in.Run(t, n.Over(in, testmpi.Job{Program: "halox", Ranks: 2, Env: []string{argumentsVariable + "=" + strings.Join(args, "\n")}})).Succeeds(t)
		links := test.Must(results.Read(record))(t)
		found, err := forecast.FindNetwork(network)
		if err != nil || found.Bandwidth < 0.8*bits/8 || found.Bandwidth > 1.1*bits/8 || found.Latency <= 0 {
			t.Errorf("the network is %+v: %v", found, err)
		}
		for _, row := range links.Rows {
			rate, want := row.Median(results.Rate)*8e9, float64(bits)
			t.Logf("%s: %.1f Mbit/s", row.Text("path"), rate/1e6)
			if row.Text("mode") == "one-way" && (rate < 0.8*want || rate > 1.1*want) || row.Text("link") != "network" {
				t.Errorf("%+v: %.3g bits/s, and the link has %.3g", row, rate, want)
			}
		}
	})
}
