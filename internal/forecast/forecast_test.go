package forecast

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
)

func heat(size ...int) Problem {
	g, err := domain.NewGrid(size, nil)
	if err != nil {
		panic(err)
	}
	return Problem{Grid: g, Width: domain.UniformRadius(len(size), 1), Element: 8}
}

// measured returns what a model takes for cubes on one, two and four devices, off by a little.
func measured(m model, noise float64, sizes ...int) (all []sample) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range sizes {
		p := heat(n, n, n)
		for _, parts := range []domain.Vec{{1, 1, 1}, {1, 1, 2}, {1, 2, 2}, {1, 1, 4}} {
			took := m.step(p.loadOf(Cut{domain.Vec{1, 1, 1}, parts}), Network{})
			all = append(all, sample{p.Grid, Cut{domain.Vec{1, 1, 1}, parts}, Network{}, seconds(took * (1 + noise*(2*random.Float64()-1)))})
		}
	}
	return all
}

var known = model{Least: 3e-6, Near: 3e-12, Cached: 2e6, Point: 4e-12, Together: 2e-6, Message: 5e-6, Within: 60e9, Hidden: 0.8}

// Steps of a model that is known are predicted at sizes that the fit has not seen, on as many devices and on others.
func TestAKnownModelIsFound(t *testing.T) {
	p := heat(64, 64, 64)
	found := test.Must(fit(p, measured(known, 0.02, 32, 64, 128, 256, 512)))(t)
	for _, n := range []int{48, 96, 200, 400} {
		for _, parts := range []domain.Vec{{1, 1, 1}, {1, 1, 2}, {1, 2, 2}, {2, 2, 2}, {1, 1, 8}} {
			l := heat(n, n, n).loadOf(Cut{domain.Vec{1, 1, 1}, parts})
			got, want := found.step(l, Network{}), known.step(l, Network{})
			if math.Abs(got/want-1) > 0.1 {
				t.Errorf("%d^3 on %v: %v, want %v", n, parts, seconds(got), seconds(want))
			}
		}
	}
}

// A model of steps on two hosts over two networks predicts those over a third, and on more hosts, whose devices it knows from
// one host.
func TestStepsOfSeveralHosts(t *testing.T) {
	network := func(rate float64) Network {
		return Network{Bandwidth: rate, Adapters: 1, Latency: 20 * time.Microsecond, Message: 50 * time.Microsecond}
	}
	p, one := heat(64, 64, 64), domain.Vec{1, 1, 1}
	samples := measured(known, 0.02, 32, 64, 128, 256)
	for _, rate := range []float64{0.1e9, 10e9} {
		for _, n := range []int{32, 64, 128, 256} {
			q := heat(n, n, n)
			c := Cut{domain.Vec{1, 1, 2}, one}
			samples = append(samples, sample{q.Grid, c, network(rate), seconds(known.step(q.loadOf(c), network(rate)))})
		}
	}
	found := test.Must(fit(p, samples))(t)
	for _, n := range []int{48, 100, 200} {
		for _, c := range []Cut{{domain.Vec{1, 1, 2}, one}, {domain.Vec{1, 2, 2}, one}, {domain.Vec{1, 1, 4}, domain.Vec{1, 2, 1}}} {
			l := heat(n, n, n).loadOf(c)
			if got, want := found.step(l, network(1e9)), known.step(l, network(1e9)); math.Abs(got/want-1) > 0.1 {
				t.Errorf("%d^3 on %v: %v, want %v", n, c, seconds(got), seconds(want))
			}
		}
	}
	samples[len(samples)-1].Network = Network{}
	if m, err := fit(p, samples); err == nil || !strings.Contains(err.Error(), "without a network") {
		t.Errorf("two hosts without a network: %+v, %v", m, err)
	}
}

func TestErrorsTellOfNoise(t *testing.T) {
	p, s := heat(64, 64, 64), measured(known, 0.05, 32, 64, 128, 256, 512)
	m := test.Must(fit(p, s))(t)
	seen, unseen := m.deviationsFrom(p, s), deviationsUnseen(p, s)
	if seen.samples != 20 || seen.worst > 0.1 || seen.median > seen.worst || seen.worst == 0 {
		t.Errorf("errors of the fit: %+v", seen)
	}
	if unseen.samples != 12 || unseen.worst > 0.2 {
		t.Errorf("errors at sizes that were not seen: %+v", unseen)
	}
}

func TestTooFewSamples(t *testing.T) {
	p := heat(64, 64, 64)
	all := measured(known, 0, 64, 128)
	for name, s := range map[string][]sample{
		"none": nil, "one size": measured(known, 0, 64, 64), "one device": {all[0], all[4], all[0], all[4], all[0], all[4]}, "five": all[:5],
		"no time": append([]sample{{all[0].Grid, all[0].Cut, Network{}, 0}}, all...),
	} {
		if m, err := fit(p, s); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// The busiest device of a cut, counted by hand.
func TestLoads(t *testing.T) {
	periodic := heat(64, 64, 64)
	periodic.Grid.Periodic = [3]bool{true, true, true}
	const face = 64 * 64 * 8
	for _, tc := range []struct {
		name string
		p    Problem
		c    Cut
		want load
	}{
		{"alone", heat(64, 64, 64), Cut{domain.Vec{1, 1, 1}, domain.Vec{1, 1, 1}}, load{points: 64 * 64 * 64}},
		{"two devices", heat(64, 64, 64), Cut{domain.Vec{1, 1, 1}, domain.Vec{1, 1, 2}}, load{points: 64 * 64 * 32, messages: 1, within: face}},
		{"four devices", heat(64, 64, 64), Cut{domain.Vec{1, 1, 1}, domain.Vec{1, 1, 4}}, load{points: 64 * 64 * 16, messages: 2, within: 2 * face}},
		{"two devices, periodic", periodic, Cut{domain.Vec{1, 1, 1}, domain.Vec{1, 1, 2}}, load{points: 64 * 64 * 32, messages: 2, within: 2 * face}},
		{"two hosts", heat(64, 64, 64), Cut{domain.Vec{1, 1, 2}, domain.Vec{1, 1, 1}}, load{points: 64 * 64 * 32, messages: 1, abroad: 1, fromHost: face}},
		{"three hosts", heat(64, 64, 64), Cut{domain.Vec{1, 1, 3}, domain.Vec{1, 1, 1}}, load{points: 64 * 64 * 22, messages: 2, abroad: 2, fromHost: 2 * face}},
		{"three hosts of two, along one axis", heat(64, 64, 64), Cut{domain.Vec{1, 1, 3}, domain.Vec{1, 1, 2}}, load{points: 64 * 64 * 11, messages: 2, within: face, abroad: 1, fromHost: 2 * face}},
		{"two hosts of four, along one axis", heat(64, 64, 64), Cut{domain.Vec{1, 1, 2}, domain.Vec{1, 1, 4}}, load{points: 64 * 64 * 8, messages: 2, within: 2 * face, abroad: 1, fromHost: face}},
		{"two hosts of four, across", heat(64, 64, 64), Cut{domain.Vec{1, 1, 2}, domain.Vec{2, 2, 1}}, load{points: 32 * 32 * 32, messages: 3, within: 2 * 32 * 32 * 8, abroad: 1, fromHost: face}},
		{"a square", heat(64, 32), Cut{domain.Vec{1, 4, 1}, domain.Vec{2, 1, 1}}, load{points: 32 * 8, messages: 3, within: 8 * 8, abroad: 2, fromHost: 2 * 64 * 8}},
	} {
		if got := tc.p.loadOf(tc.c); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// The cut over hosts is that of the fewest bytes, and what cannot be cut is refused.
func TestCutOverHosts(t *testing.T) {
	c, err := heat(512, 512, 512).CutOver(8, 4)
	if err != nil || c.Hosts != (domain.Vec{2, 2, 2}) || c.Devices.Product() != 4 {
		t.Errorf("8 hosts: %v, %v", c, err)
	}
	if c, err := heat(8, 8, 8).CutOver(1024, 4); err == nil {
		t.Errorf("8^3 over 4096 devices: %v", c)
	}
	grown, c, err := heat(100, 100, 100).grown(64, 8)
	if err != nil || grown.Grid.Size != (domain.Vec{400, 400, 400}) || c.Hosts != (domain.Vec{4, 4, 4}) {
		t.Errorf("64 hosts of 100^3: %v, %v, %v", grown.Grid.Size, c, err)
	}
}

// More hosts take no less efficiency on a network that costs nothing than sweeps alone do, and on a slower network steps take longer.
func TestCurves(t *testing.T) {
	hosts := Doubled(10000)
	if len(hosts) != 15 || hosts[14] != 10000 {
		t.Fatalf("hosts: %v", hosts)
	}
	free := Network{Bandwidth: math.Inf(1), Adapters: 1}
	slow := Network{Bandwidth: 1e9, Adapters: 1, Latency: 30 * time.Microsecond, Message: 15 * time.Microsecond}
	f := Forecast{Problem: heat(1024, 1024, 1024), Hosts: hosts, Devices: 4}
	by := []candidate{{name: "slow", model: model{Least: 1e-3, Point: 1e-9, Within: 1e9}}, {name: "fast", model: known, fewest: 64 * 64 * 64}}
	for _, weak := range []bool{false, true} {
		fast, err1 := f.curve(free, by, weak)
		late, err2 := f.curve(slow, by, weak)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for i, s := range fast {
			if s.hosts != hosts[i] || s.time < s.sweep || s.by != "fast" || s.efficiency > 1.001 || late[i].time < s.time {
				t.Errorf("weak %t: %+v; on the slow network %+v", weak, s, late[i])
			}
		}
		if first := fast[0]; first.efficiency != 1 || first.load.fromHost != 0 || first.beyond {
			t.Errorf("weak %t: one host: %+v", weak, first)
		}
		if last := fast[14]; !weak && !last.beyond || weak && last.efficiency < 0.9 {
			t.Errorf("weak %t: 10000 hosts: %+v", weak, last)
		}
		if n, found := below(late, 0.9); !found || n < 2 {
			t.Errorf("weak %t: below 90%% at %d, %v", weak, n, found)
		}
	}
}

// Where links within a host are the slowest, hosts whose grid grows with them take as long as one.
func TestSlowLinksWithinHosts(t *testing.T) {
	slow := known
	slow.Within = 1e6
	f := Forecast{Problem: heat(64, 64, 64), Hosts: Doubled(64), Devices: 4}
	steps := test.Must(f.curve(Network{Bandwidth: 1e9, Adapters: 1}, []candidate{{name: "slow", model: slow}}, true))(t)
	for _, s := range steps {
		if s.efficiency > 1 {
			t.Errorf("%d hosts, cut %v: efficiency %v", s.hosts, s.cut, s.efficiency)
		}
	}
}

// A step that takes longer than there are durations takes the longest; between two numbers of hosts the efficiency falls evenly.
func TestSecondsAndBelow(t *testing.T) {
	for s, want := range map[float64]time.Duration{1.5: 1500 * time.Millisecond, 1e12: math.MaxInt64, math.Inf(1): math.MaxInt64} {
		if got := seconds(s); got != want {
			t.Errorf("%g s: %v, want %v", s, got, want)
		}
	}
	steps := []step{{hosts: 1, efficiency: 1}, {hosts: 2, efficiency: 0.95}, {hosts: 8, efficiency: 0.85}}
	for least, want := range map[float64]int{0.9: 4, 0.5: 0} {
		if n, found := below(steps, least); found != (want > 0) || found && n != want {
			t.Errorf("%v: %d, %v", least, n, found)
		}
	}
}

// Networks are found by name or read from a file, as the page describes one; what has no end, no keys, or impossible values is rejected.
func TestNetworks(t *testing.T) {
	for _, n := range Names() {
		if got, err := FindNetwork(n); err != nil || got.Name != n {
			t.Errorf("%s: %+v, %v", n, got, err)
		}
	}
	page := test.Must(os.ReadFile("../../docs/how-to/predict-scaling.md"))(t)
	_, after, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ := strings.Cut(after, "```")
	if n, err := readNetwork([]byte(text)); err != nil || n.Adapters != 4 {
		t.Errorf("%q: %+v, %v", text, n, err)
	}
	got, err := readNetwork([]byte("latency_us: 2.5\nbandwidth_gb_s: 10\nadapters: 2\n"))
	if want := (Network{Latency: 2500 * time.Nanosecond, Bandwidth: 10e9, Adapters: 2, Message: 15 * time.Microsecond}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"latency_us: 1": "", "latency_us: -1\nbandwidth_gb_s: 1": "", "bandwidth_gb_s: .nan": "", "bandwidth_gb_s: 1\nadapters: 0": "",
		"bandwidth_gb_s: .inf": "", "bandwidth_gb_s: 1e-320": "", "latency_us: .nan\nbandwidth_gb_s: 1": "", "message_us: .nan\nbandwidth_gb_s: 1": "",
		"message_us: .inf\nbandwidth_gb_s: 1": "", "bandwidth_gb_s: 1\n---\nbandwidth_gb_s: 2": "", `name: "\x1b[31mred"` + "\nbandwidth_gb_s: 1": "",
		"latency: 1":                           "line 1: field latency not found",
		"":                                     "must have keys with values",
		"[1]":                                  "cannot unmarshal",
		"bandwidth_gb_s: 1\nadapters: 1.5":     "adapters: must be a whole number, got 1.5",
		"bandwidth_gb_s: 1\nadapters: .nan":    "adapters: must be between 1 and 1024, got NaN",
		"latency_us: abc":                      "line 1: cannot unmarshal !!str `abc`",
		"bandwidth_gb_s: 1\nbandwidth_gb_s: 2": "line 2: mapping key \"bandwidth_gb_s\" already defined",
		"bandwidth_gb_s: 1\nlatency_us: &a [*a]\n": "line 2: cannot unmarshal !!seq",
	} {
		if n, err := readNetwork([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, n, err, want)
		}
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	test.Check(t, errors.Join(os.WriteFile(large, []byte("bandwidth_gb_s: 1"), 0o644), os.Truncate(large, mostBytes+1)))
	for name, want := range map[string]string{large: "must have at most 1048576 bytes", t.TempDir(): "is a directory", os.DevNull: "must have keys with values", "ethernet": ""} {
		if n, err := FindNetwork(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", name, n, err, want)
		}
	}
}
