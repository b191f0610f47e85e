package domain

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/halox/halox/internal/test"
)

func TestNestedParts(t *testing.T) {
	for _, tc := range []struct {
		name           string
		size           []int
		hosts, devices int
		outer, inner   Vec
	}{
		{"one host, as AutoParts", []int{64, 64, 64}, 1, 4, Vec{1, 1, 1}, Vec{1, 1, 4}},
		{"one device per host", []int{64, 64, 64}, 4, 1, Vec{1, 2, 2}, Vec{1, 1, 1}},
		{"hosts along the longest axis", []int{128, 32, 32}, 2, 2, Vec{2, 1, 1}, Vec{1, 1, 2}},
		{"two hosts of a cube", []int{64, 64, 64}, 2, 4, Vec{1, 1, 2}, Vec{1, 1, 4}},
		{"a plane", []int{64, 256}, 2, 2, Vec{1, 2, 1}, Vec{1, 2, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := test.Must(NewGrid(tc.size, nil))(t)
			outer, inner, err := NestedParts(g, tc.hosts, tc.devices, UniformRadius(g.Dims, 1))
			if err != nil || outer != tc.outer || inner != tc.inner {
				t.Errorf("hosts %v, devices %v, %v; want %v and %v", outer, inner, err, tc.outer, tc.inner)
			}
		})
	}
}

// No other decomposition into equal parts sends fewer points between hosts, counted by subdomain.
func TestNestedPartsSendLeastBetweenHosts(t *testing.T) {
	for _, tc := range []struct {
		size           []int
		periodic       [3]bool
		hosts, devices int
	}{
		{[]int{12, 12, 12}, [3]bool{}, 4, 2},
		{[]int{24, 12, 6}, [3]bool{true, false, false}, 3, 2},
		{[]int{12, 24}, [3]bool{false, true}, 4, 3},
	} {
		g := test.Must(NewGrid(tc.size, tc.periodic[:len(tc.size)]))(t)
		w := UniformRadius(g.Dims, 1)
		outer, inner, err := NestedParts(g, tc.hosts, tc.devices, w)
		test.Check(t, err)
		got, least := mostBetween(t, g, outer, inner), int64(1<<62)
		for _, o := range products(tc.hosts) {
			for _, i := range products(tc.devices) {
				if n := mostBetween(t, g, o, i); n > 0 {
					least = min(least, n)
				}
			}
		}
		if got != least {
			t.Errorf("%v over %d hosts of %d devices: got %d points between hosts with %v and %v, want %d", tc.size, tc.hosts, tc.devices, got, outer, inner, least)
		}
	}
}

func products(n int) (all []Vec) {
	for x := 1; x <= n; x++ {
		for y := 1; y <= n; y++ {
			for z := 1; z <= n; z++ {
				if x*y*z == n {
					all = append(all, Vec{x, y, z})
				}
			}
		}
	}
	return all
}

// mostBetween calls betweenHosts; it returns 0 if a decomposition does not exist or its parts are not equal.
func mostBetween(t *testing.T, g Grid, outer, inner Vec) int64 {
	t.Helper()
	parts := Vec{outer[0] * inner[0], outer[1] * inner[1], outer[2] * inner[2]}
	for a := range parts {
		if parts[a] > g.Size[a] || g.Size[a]%parts[a] != 0 {
			return 0
		}
	}
	d := test.Must(Decompose(g, parts))(t)
	return betweenHosts(d, inner, UniformRadius(g.Dims, 1))
}

// The cut over hosts and devices that a cut of all is: hosts get subdomains in the order of their ranks.
func TestNestedAs(t *testing.T) {
	for _, tc := range []struct {
		name         string
		size         []int
		parts        Vec
		devices      int
		outer, inner Vec // 0 if the hosts do not get boxes
	}{
		{"one device per host", []int{8, 8, 8}, Vec{2, 3, 4}, 1, Vec{2, 3, 4}, Vec{1, 1, 1}},
		{"one host", []int{8, 8, 8}, Vec{2, 1, 3}, 6, Vec{1, 1, 1}, Vec{2, 1, 3}},
		{"rows", []int{8, 8, 8}, Vec{4, 2, 2}, 4, Vec{1, 2, 2}, Vec{4, 1, 1}},
		{"parts of rows", []int{8, 8, 8}, Vec{4, 2, 2}, 2, Vec{2, 2, 2}, Vec{2, 1, 1}},
		{"rows of two along y", []int{8, 8}, Vec{2, 4, 1}, 4, Vec{1, 2, 1}, Vec{2, 2, 1}},
		{"a host with an L-shaped part", []int{8, 8}, Vec{3, 2, 1}, 2, Vec{}, Vec{}},
		{"a row and a half per host", []int{8, 9}, Vec{2, 3, 1}, 4, Vec{}, Vec{}},
		{"not a multiple of the devices per host", []int{8, 8}, Vec{3, 1, 1}, 2, Vec{}, Vec{}},
		{"more devices than parts", []int{8, 8}, Vec{2, 1, 1}, 4, Vec{}, Vec{}},
		{"no devices", []int{8, 8}, Vec{2, 1, 1}, 0, Vec{}, Vec{}},
		{"no parts", []int{8, 8}, Vec{0, 1, 1}, 1, Vec{}, Vec{}},
		{"too few layers", []int{8, 8}, Vec{8, 1, 1}, 2, Vec{}, Vec{}},
		{"more parts than points", []int{8, 8}, Vec{9, 1, 1}, 3, Vec{}, Vec{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := test.Must(NewGrid(tc.size, nil))(t)
			outer, inner, err := NestedAs(g, tc.parts, tc.devices, UniformRadius(g.Dims, 2))
			if (err != nil) != (tc.outer == Vec{}) || err == nil && (outer != tc.outer || inner != tc.inner) {
				t.Fatalf("hosts %v, devices %v, %v; want %v and %v", outer, inner, err, tc.outer, tc.inner)
			}
			if err != nil {
				return
			}
			hosts := map[Vec]int{} // the host of each block of subdomains, in the order of ranks
			for rank := range int(tc.parts.Product()) {
				coord := Vec{rank % tc.parts[0], rank / tc.parts[0] % tc.parts[1], rank / tc.parts[0] / tc.parts[1]}
				block := BlockOf(coord, inner)
				if host, known := hosts[block]; known && host != rank/tc.devices {
					t.Errorf("%v belongs to hosts %d and %d", block, host, rank/tc.devices)
				}
				hosts[block] = rank / tc.devices
			}
		})
	}
}

// Bounds computed from the distinct pieces equal those over all parts.
func TestPiecesMatchAllParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(2, 3).Draw(t, "dims")
		var size []int
		var periodic [3]bool
		var w Radius
		outer, inner, parts := Vec{1, 1, 1}, Vec{1, 1, 1}, Vec{1, 1, 1}
		for a := range dims {
			size = append(size, rapid.IntRange(1, 40).Draw(t, "size"))
			periodic[a] = rapid.Bool().Draw(t, "periodic")
			w.Minus[a], w.Plus[a] = rapid.IntRange(0, 3).Draw(t, "minus"), rapid.IntRange(0, 3).Draw(t, "plus")
			outer[a], inner[a] = rapid.IntRange(1, 5).Draw(t, "outer"), rapid.IntRange(1, 4).Draw(t, "inner")
			parts[a] = outer[a] * inner[a]
		}
		g := test.Must(NewGrid(size, periodic[:len(size)]))(t)
		got, ok := sizes(g, parts, w)
		d, err := Decompose(g, parts)
		if err == nil {
			err = d.CheckWidth(w)
		}
		if ok != (err == nil) {
			t.Fatalf("parts %v of %v, width %v: %t, %v", parts, size, w, ok, err)
		}
		if !ok {
			return
		}
		want := sized{}
		for _, s := range d.Subdomains {
			cost := sweepCost * float64(s.Box.Points())
			for _, dir := range Faces(dims) {
				if _, ok := d.Neighbor(s.Rank, dir); ok {
					cost += messageCost + float64(SendBox(s.Box, dir, w).Points())*axisCost(dir.Axis(), dims)
				}
			}
			want.largest, want.cost = max(want.largest, s.Box.Points()), max(want.cost, cost)
		}
		if got.largest != want.largest || math.Abs(got.cost-want.cost) > 1e-9*want.cost {
			t.Errorf("parts %v of %v: got %+v, want %+v", parts, size, got, want)
		}
		if got, want := sentBetweenHosts(g, parts, inner, w), betweenHosts(d, inner, w); got != want {
			t.Errorf("parts %v of %v over hosts of %v: got %d points between hosts, want %d", parts, size, inner, got, want)
		}
	})
}

// betweenHosts counts points by subdomain.
func betweenHosts(d *Decomposition, inner Vec, w Radius) (most int64) {
	points := map[Vec]int64{}
	for _, s := range d.Subdomains {
		for _, dir := range Faces(d.Grid.Dims) {
			to, ok := d.Neighbor(s.Rank, dir)
			if host := BlockOf(s.Coord, inner); ok && BlockOf(d.Subdomains[to].Coord, inner) != host {
				points[host] += SendBox(s.Box, dir, w).Points()
				most = max(most, points[host])
			}
		}
	}
	return most
}

// NestedParts is fast for 10,000 hosts.
func TestNestedPartsOfManyHosts(t *testing.T) {
	g := test.Must(NewGrid([]int{20000, 20000, 20000}, []bool{true, true, true}))(t)
	begin := time.Now()
	outer, inner, err := NestedParts(g, 10000, 8, UniformRadius(3, 1))
	if err != nil || outer.Product() != 10000 || inner.Product() != 8 {
		t.Errorf("%v %v %v", outer, inner, err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	} else {
		t.Log(took, outer, inner)
	}
}
