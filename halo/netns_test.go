//go:build linux

package halo_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/internal/testnet"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// turns is what a process says when exchanges go well, with its rank and its number.
const turns = "<rank %d, process %d: exchanges>"

// exchanges has all processes exchange ghosts until one fails.
func exchanges(p processes) error {
	grid := must(domain.NewGrid([]int{16, 16, 4 * p.Size()}, [3]bool{false, false, true}))(here)
	cut := must(domain.Decompose(grid, domain.Vec{1, 1, p.Size()}))(here)
	var owners []int
	devices := make([]*streams.Device, p.Size())
	for rank := range p.Size() {
		owners = append(owners, rank)
	}
	devices[p.Rank] = p.devices[0]
	place := must(halo.PlaceAmong(p.Processes, cut, owners, devices))(here)
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}
	field := must(halo.NewField(place, spec))(here)
	plan := must(halo.NewPlan(place, p.links, p2p.Auto, spec))(here)
	x := must(halo.NewExchanger(plan, p.compiler, field))(here)
	at := must(place.NewStreams())(here)
	for n, end := 0, time.Now().Add(time.Minute); time.Now().Before(end); n++ {
		if err := errors.Join(x.Exchange(at), at.Sync(testLimit)); err != nil {
			return fmt.Errorf("exchange %d: %w", n, err)
		}
		if n == 50 {
			fmt.Fprintf(os.Stderr, turns+"\n", p.Rank, os.Getpid())
		}
	}
	return errors.New("nobody has failed")
}

// A link that is cut, and a rank that is killed, in the midst of exchanges: all others end within the limit, and say who it was.
// Nothing goes on.
func TestNetnsFailures(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []struct {
			name  string
			hosts int
			fail  func(t *testing.T, n *testnet.Net, said string)
			says  *regexp.Regexp // of those that are left; nothing where the launcher may be first to end them
		}{
			{"link", 2, func(t *testing.T, n *testnet.Net, _ string) { n.Hosts[1].Cut(t) }, regexp.MustCompile(`<rank 0 after .*rank 1 on host node1`)},
			{"link of 4", 4, func(t *testing.T, n *testnet.Net, _ string) { n.Hosts[2].Cut(t) }, regexp.MustCompile(`<rank [013] after .*rank 2 on host node2`)},
			{"killed", 2, func(t *testing.T, _ *testnet.Net, said string) { kill(t, said, 1) }, nil},
		} {
			t.Run(tc.name, func(t *testing.T) {
				n := testnet.New(t, tc.hosts)
				job := testmpi.Job{Program: "exchanges", Ranks: tc.hosts}
				job.Said = "<rank 1, process"
				job.Then = func(said string) { tc.fail(t, n, said) }
				r := in.Run(t, n.Over(in, job))
				took := r.Ended.Sub(r.Said)
				t.Logf("all ranks had ended %v after that; the launcher hung: %t", took.Round(time.Millisecond), r.Hung)
				if r.Said.IsZero() || r.Err == nil || len(r.Left) > 0 || r.Late {
					t.Fatalf("late %t, left %v: %v\n%s", r.Late, r.Left, r.Err, r.Out)
				}
				if took > 30*time.Second {
					t.Errorf("it took %v:\n%s", took, r.Out)
				}
				if tc.says != nil && !tc.says.MatchString(r.Out) {
					t.Errorf("it does not say %v:\n%s", tc.says, r.Out)
				}
			})
		}
	})
}

// kill ends the process of a rank that has said so.
func kill(t *testing.T, said string, rank int) {
	found := regexp.MustCompile(fmt.Sprintf(`<rank %d, process (\d+): exchanges>`, rank)).FindStringSubmatch(said)
	if found == nil {
		t.Errorf("rank %d has not said its number: %s", rank, said)
		return
	}
	pid, err := strconv.Atoi(found[1])
	if err == nil {
		var p *os.Process
		if p, err = os.FindProcess(pid); err == nil {
			err = p.Kill()
		}
	}
	test.Report(t, err)
}
