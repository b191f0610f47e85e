package halo_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// closed returns n closed devices.
func closed(n int) (d []*streams.Device) {
	for i := range n {
		d = append(d, &streams.Device{Info: streams.Info{ID: i}})
	}
	return d
}

var oneLayer = halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}

// islands is a cost function for devices on islands with fast links.
func islands(island ...int) func(from, to *streams.Device, bytes int64) float64 {
	return func(from, to *streams.Device, bytes int64) float64 {
		if island[from.ID] == island[to.ID] {
			return 1 + float64(bytes)/400
		}
		return 10 + float64(bytes)/25
	}
}

// In a chain of subdomains on two islands, neighbors share an island, and only one link is slow.
func TestMapDevicesOnIslands(t *testing.T) {
	d := cut(t, []int{8, 80}, [3]bool{}, domain.Vec{1, 8, 1})
	island := []int{0, 1, 0, 1, 0, 1, 0, 1}
	place, why, err := halo.MapDevices(d, closed(8), islands(island...), oneLayer)
	test.Check(t, err)
	far := 0
	for i := range 7 {
		if island[place.Devices[i].ID] != island[place.Devices[i+1].ID] {
			far++
		}
	}
	near, over := 1+64./400, 10+64./25
	if far != 1 || math.Abs(why.Exact.Busiest-(near+over)) > 1e-9 || math.Abs(why.Exact.Total-(12*near+2*over)) > 1e-9 {
		t.Errorf("%d far links: %v", far, why)
	}
	if math.Abs(why.Given.Busiest-2*over) > 1e-9 || why.Kept || !why.Searched {
		t.Errorf("explained by %+v", why)
	}
	if text := why.String(); !strings.Contains(text, "as given 25.1") || !strings.Contains(text, "exact 13.7") {
		t.Error(text)
	}
}

// If all links are alike, or nearly, the order is kept.
func TestMapDevicesKeepsTheOrder(t *testing.T) {
	d := cut(t, []int{40, 80}, [3]bool{true, false}, domain.Vec{2, 4, 1})
	devices := closed(8)
	for name, noise := range map[string]float64{"alike": 0, "nearly": 0.02} {
		r := rand.New(rand.NewPCG(1, 2))
		costs := map[[2]int]float64{}
		cost := func(from, to *streams.Device, bytes int64) float64 {
			key := [2]int{from.ID, to.ID}
			if _, ok := costs[key]; !ok {
				costs[key] = 1 + noise*r.Float64()
			}
			return costs[key] * float64(bytes)
		}
		place, why, err := halo.MapDevices(d, devices, cost, oneLayer)
		if err != nil || !why.Kept || !slices.Equal(place.Devices, devices) {
			t.Errorf("%s: %v, %v", name, why, err)
		}
	}
}

// Exact is the minimum over all orders, compared with a brute-force search.
func TestMapDevicesAgreesWithBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, parts := range []domain.Vec{{1, 2, 1}, {3, 1, 1}, {2, 2, 1}, {1, 5, 1}, {2, 3, 1}, {3, 2, 1}} {
		d := cut(t, []int{31, 22}, [3]bool{r.IntN(2) == 0, r.IntN(2) == 0}, parts)
		n := len(d.Subdomains)
		links := make([]float64, n*n)
		for i := range links {
			links[i] = 1 + 9*r.Float64()
		}
		cost := func(from, to *streams.Device, bytes int64) float64 { return links[from.ID*n+to.ID] * float64(bytes) }
		for _, shared := range []int{n, 2} { // one device each, or several on two devices
			var devices []*streams.Device
			for i, all := 0, closed(n); i < n; i++ {
				devices = append(devices, all[i%shared])
			}
			agreesWithBruteForce(t, d, devices, cost)
		}
	}
}

func agreesWithBruteForce(t *testing.T, d *domain.Decomposition, devices []*streams.Device, cost func(from, to *streams.Device, bytes int64) float64) {
	t.Helper()
	whole := oneLayer // elements without padding in messages: costs are proportional to bytes
	whole.Element = domain.Complex128
	place, why, err := halo.MapDevices(d, devices, cost, whole)
	test.Check(t, err)
	best := math.Inf(1)
	permutations(len(devices), func(order []int) { best = min(best, busiest(d, devices, order, cost)) })
	if math.Abs(why.Exact.Busiest-best) > 1e-9*best {
		t.Errorf("%v on %v: exact %v, by brute force %v", d.Parts, devices, why.Exact.Busiest, best)
	}
	if got := busiest(d, place.Devices, nil, cost); !why.Kept && math.Abs(got-best) > 1e-9*best {
		t.Errorf("%v on %v: the placement costs %v, want %v", d.Parts, devices, got, best)
	}
	if why.Greedy.Busiest < best*(1-1e-9) {
		t.Errorf("%v on %v: greedy %v is below the least %v", d.Parts, devices, why.Greedy.Busiest, best)
	}
}

// busiest returns the cost of the faces that the busiest device sends or receives, one layer of 16 bytes per
// point.
func busiest(d *domain.Decomposition, devices []*streams.Device, order []int, cost func(from, to *streams.Device, bytes int64) float64) float64 {
	at := func(rank int) *streams.Device {
		if order != nil {
			rank = order[rank]
		}
		return devices[rank]
	}
	sent, got := map[*streams.Device]float64{}, map[*streams.Device]float64{}
	worst := 0.0
	for _, s := range d.Subdomains {
		for _, dir := range domain.Faces(2) {
			to, ok := d.Neighbor(s.Rank, dir)
			if !ok {
				continue
			}
			size := s.Box.Size()
			c := cost(at(s.Rank), at(to), 16*int64(size[1-dir.Axis()]))
			sent[at(s.Rank)] += c
			got[at(to)] += c
			worst = max(worst, sent[at(s.Rank)], got[at(to)])
		}
	}
	return worst
}

func permutations(n int, f func(order []int)) {
	var grow func(order []int)
	grow = func(order []int) {
		if len(order) == n {
			f(order)
		}
		for i := range n {
			if !slices.Contains(order, i) {
				grow(append(slices.Clone(order), i))
			}
		}
	}
	grow(nil)
}

// More subdomains than can be searched are placed greedily: a ring over two islands with alternating devices.
func TestMapDevicesBeyondTheSearch(t *testing.T) {
	d := cut(t, []int{8, 120}, [3]bool{false, true}, domain.Vec{1, 12, 1})
	_, why, err := halo.MapDevices(d, closed(12), islands(0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1), oneLayer)
	if err != nil || why.Searched || why.Kept || why.Exact != why.Greedy || why.Greedy.Busiest >= why.Given.Busiest {
		t.Errorf("%+v, %v", why, err)
	}
	if !strings.Contains(why.String(), "not searched") {
		t.Error(why)
	}
}

// The cost function may be slow: it is called once per pair and size. If links are alike, the search ends
// early.
func TestMapDevicesAsksOnce(t *testing.T) {
	d := cut(t, []int{30, 30, 31}, [3]bool{true, true, true}, domain.Vec{2, 2, 2})
	type question struct{ from, to, bytes int }
	asked := map[question]int{}
	cost := func(from, to *streams.Device, bytes int64) float64 {
		asked[question{from.ID, to.ID, int(bytes)}]++
		return float64(bytes)
	}
	box := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1), Connectivity: halo.Corners}
	if _, why, err := halo.MapDevices(d, closed(8), cost, box); err != nil || !why.Kept || !why.Searched {
		t.Errorf("%+v, %v", why, err)
	}
	for q, n := range asked {
		if n > 1 {
			t.Errorf("asked %d times for %+v", n, q)
		}
	}
}

// If there is no path between some devices, neighbors are not placed there.
func TestMapDevicesAvoidsMissingPaths(t *testing.T) {
	d := cut(t, []int{8, 80}, [3]bool{}, domain.Vec{1, 4, 1})
	cost := func(from, to *streams.Device, bytes int64) float64 {
		if gap := from.ID - to.ID; gap == 1 || gap == -1 {
			return math.Inf(1)
		}
		return 1
	}
	_, why, err := halo.MapDevices(d, closed(4), cost, oneLayer)
	if err != nil || why.Kept || !math.IsInf(why.Given.Busiest, 1) || why.Exact.Busiest != 2 {
		t.Errorf("%+v, %v", why, err)
	}
}

func TestMapDevicesErrors(t *testing.T) {
	for name, bad := range map[string]float64{"NaN": math.NaN(), "-1": -1} {
		cost := func(from, to *streams.Device, bytes int64) float64 { return bad }
		_, _, err := halo.MapDevices(cut(t, []int{8, 8}, [3]bool{}, domain.Vec{1, 2, 1}), closed(2), cost, oneLayer)
		if err == nil || !strings.Contains(err.Error(), "64 bytes from device") || !strings.Contains(err.Error(), name) {
			t.Errorf("a cost of %s: %v", name, err)
		}
	}
	d := cut(t, []int{8, 8}, [3]bool{}, domain.Vec{1, 2, 1})
	if _, _, err := halo.MapDevices(d, closed(2), func(_, _ *streams.Device, _ int64) float64 { panic("no cost") }, oneLayer); err == nil ||
		!strings.Contains(err.Error(), "panicked: no cost") {
		t.Errorf("a cost that panics: %v", err)
	}
	if _, _, err := halo.MapDevices(d, closed(3), islands(0, 0, 0), oneLayer); err == nil {
		t.Error("three devices for two subdomains")
	}
	if _, _, err := halo.MapDevices(d, closed(2), islands(0, 0), halo.Spec{Name: "u"}); err == nil {
		t.Error("a field of no element")
	}
}

// Every path of every link gets a time that does not decrease with the size.
func TestMeasure(t *testing.T) {
	testdevices.Each(t, 3, func(t *testing.T, set *testdevices.Set) {
		r := must(halo.Measure(t.Context(), set.Devices, set.Links, set.Compiler, ""))(t)
		for _, from := range set.Devices {
			for _, to := range set.Devices {
				for _, path := range paths {
					link := set.Links.Between(from, to)
					want := link != nil && (link.Usable || path == p2p.Staged) || from == to && path == p2p.Direct
					for _, packed := range []bool{false, true} {
						small, ok := r.Time(from, to, path, p2p.MessageShape{Bytes: 1, Packed: packed})
						large, _ := r.Time(from, to, path, p2p.MessageShape{Bytes: 1 << 24, Packed: packed})
						if ok != want && (from != to || set.Devices[0].Backend != "host") {
							t.Errorf("%v to %v by %s: measured %v, want %v", from, to, path, ok, want)
						}
						if ok && (small <= 0 || large < small) {
							t.Errorf("%v to %v by %s: 1 B in %v, 16 MiB in %v", from, to, path, small, large)
						}
					}
				}
			}
		}
	})
}

// The second call reads the link model from the file; a damaged file is replaced.
func TestLinkModelIsMeasuredOnce(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		folder := filepath.Join(t.TempDir(), "cache")
		rates := func() string {
			test.Must(halo.LinkModel(t.Context(), set.Devices, set.Links, set.Compiler, "1", folder))(t)
			files, _ := filepath.Glob(filepath.Join(folder, "links-*.json"))
			if len(files) != 1 {
				t.Fatalf("files %v", files)
			}
			text := must(os.ReadFile(files[0]))(t)
			if string(text) == "{" {
				t.Fatal("the damaged file is still there")
			}
			return string(text)
		}
		first := rates()
		if rates() != first {
			t.Error("they were measured twice")
		}
		files, _ := filepath.Glob(filepath.Join(folder, "links-*.json"))
		done(t, nil, os.WriteFile(files[0], []byte("{"), 0o644))
		rates()
	})
}

// Messages within a host and between hosts are measured between the first possible processes.
func TestFirstPair(t *testing.T) {
	for _, tc := range []struct {
		name           string
		nodes          []int
		within, across [2]int // equal if there is none
	}{
		{"alone", []int{0}, [2]int{}, [2]int{}},
		{"one host", []int{0, 0, 0}, [2]int{0, 1}, [2]int{}},
		{"one process per host", []int{0, 1, 2}, [2]int{}, [2]int{0, 1}},
		{"alternating hosts", []int{0, 1, 0, 1}, [2]int{0, 2}, [2]int{0, 1}},
		{"one host after the other", []int{0, 0, 1, 1}, [2]int{0, 1}, [2]int{0, 2}},
		{"the last has two", []int{0, 1, 2, 2}, [2]int{2, 3}, [2]int{0, 1}},
	} {
		for alike, want := range map[bool][2]int{true: tc.within, false: tc.across} {
			from, to, found := halo.FirstPair(tc.nodes, alike)
			if [2]int{from, to} != want || found != (want[0] != want[1]) {
				t.Errorf("%s, on one host %t: %d and %d, %t, want %v", tc.name, alike, from, to, found, want)
			}
		}
	}
}

func TestProcessModel(t *testing.T) {
	curve := func(us time.Duration) *halo.ProcessCurve {
		return &halo.ProcessCurve{Curve: p2p.NewCurve(p2p.Sample{Bytes: 1000, Time: us * time.Microsecond}, p2p.Sample{Bytes: 2000, Time: 2 * us * time.Microsecond})}
	}
	m := &halo.ProcessModel{Nodes: []int{0, 0, 1}, SameHost: curve(10), OtherHosts: curve(50)}
	for _, tc := range []struct {
		from, to int
		bytes    int64
		want     time.Duration
	}{{0, 1, 1000, 10 * time.Microsecond}, {1, 0, 1500, 15 * time.Microsecond}, {0, 2, 2000, 100 * time.Microsecond}, {2, 1, 10, 50 * time.Microsecond}} {
		if got, ok := m.Time(tc.from, tc.to, tc.bytes); got != tc.want || !ok {
			t.Errorf("%d bytes from %d to %d: %v, %t, want %v", tc.bytes, tc.from, tc.to, got, ok, tc.want)
		}
	}
	m.OtherHosts = nil
	if got, ok := m.Time(0, 2, 8); ok {
		t.Errorf("between hosts without a measurement: %v", got)
	}
	if got, ok := (*halo.ProcessModel)(nil).Time(0, 1, 8); ok {
		t.Errorf("without a model: %v", got)
	}
}
