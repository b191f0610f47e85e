package domain_test

import (
	"testing"

	"github.com/halox/halox/domain"
)

func TestNestedParts(t *testing.T) {
	for _, tc := range []struct {
		name           string
		size           []int
		periodic       [3]bool
		hosts, devices int
		outer, inner   domain.Vec
	}{
		{"one host is AutoParts", []int{64, 64, 64}, [3]bool{}, 1, 4, domain.Vec{1, 1, 1}, domain.Vec{1, 1, 4}},
		{"one device a host", []int{64, 64, 64}, [3]bool{}, 4, 1, domain.Vec{1, 2, 2}, domain.Vec{1, 1, 1}},
		{"hosts along the longest axis", []int{128, 32, 32}, [3]bool{}, 2, 2, domain.Vec{2, 1, 1}, domain.Vec{1, 1, 2}},
		{"two hosts of a cube", []int{64, 64, 64}, [3]bool{}, 2, 4, domain.Vec{1, 1, 2}, domain.Vec{1, 1, 4}},
		{"a plane", []int{64, 256, 1}, [3]bool{}, 2, 2, domain.Vec{1, 2, 1}, domain.Vec{1, 2, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			size := tc.size
			if size[2] == 1 {
				size = size[:2]
			}
			g, err := domain.NewGrid(size, tc.periodic)
			if err != nil {
				t.Fatal(err)
			}
			w := domain.UniformRadius(g.Dims, 1)
			outer, inner, err := domain.NestedParts(g, tc.hosts, tc.devices, w)
			if err != nil || outer != tc.outer || inner != tc.inner {
				t.Errorf("hosts %v, devices %v, %v; want %v and %v", outer, inner, err, tc.outer, tc.inner)
			}
		})
	}
}

// No other cut sends fewer points between hosts: counted here point by point, by who owns it and
// who needs it.
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
		g, err := domain.NewGrid(tc.size, tc.periodic)
		if err != nil {
			t.Fatal(err)
		}
		w := domain.UniformRadius(g.Dims, 1)
		outer, inner, err := domain.NestedParts(g, tc.hosts, tc.devices, w)
		if err != nil {
			t.Fatal(err)
		}
		got, least := mostBetween(t, g, outer, inner), 1<<62
		for _, o := range products(tc.hosts) {
			for _, i := range products(tc.devices) {
				if n := mostBetween(t, g, o, i); n > 0 {
					least = min(least, n)
				}
			}
		}
		if got != least {
			t.Errorf("%v over %d hosts of %d devices: %d points by hosts %v, devices %v; %d are possible", tc.size, tc.hosts, tc.devices, got, outer, inner, least)
		}
	}
}

func products(n int) (all []domain.Vec) {
	for x := 1; x <= n; x++ {
		for y := 1; y <= n; y++ {
			for z := 1; z <= n; z++ {
				if x*y*z == n {
					all = append(all, domain.Vec{x, y, z})
				}
			}
		}
	}
	return all
}

// mostBetween counts, for each host, its points that another host has as a ghost of one layer in
// an exchange of faces, once for each subdomain that has; 0 where the cut is none, or is not
// balanced to the point.
func mostBetween(t *testing.T, g domain.Grid, outer, inner domain.Vec) (most int) {
	t.Helper()
	parts := domain.Vec{outer[0] * inner[0], outer[1] * inner[1], outer[2] * inner[2]}
	owner := map[domain.Vec]domain.Vec{} // the subdomain of a point
	for a := range parts {
		if parts[a] > g.Size[a] || g.Size[a]%parts[a] != 0 {
			return 0
		}
	}
	each := func(f func(p domain.Vec)) {
		for z := range g.Size[2] {
			for y := range g.Size[1] {
				for x := range g.Size[0] {
					f(domain.Vec{x, y, z})
				}
			}
		}
	}
	each(func(p domain.Vec) {
		for a := range p {
			s := owner[p]
			s[a] = p[a] / (g.Size[a] / parts[a])
			owner[p] = s
		}
	})
	sent := map[domain.Vec]int{}
	each(func(p domain.Vec) {
		for a := range g.Dims {
			for _, step := range []int{-1, 1} {
				q := p
				q[a] += step
				if g.Periodic[a] {
					q[a] = (q[a] + g.Size[a]) % g.Size[a]
				}
				other, inside := owner[q]
				from := domain.BlockOf(owner[p], inner)
				if inside && domain.BlockOf(other, inner) != from {
					sent[from]++
					most = max(most, sent[from])
				}
			}
		}
	})
	return most
}

// The cut over hosts and devices that a cut of all is: hosts get subdomains in the order of their ranks.
func TestNestedAs(t *testing.T) {
	for _, tc := range []struct {
		name         string
		size         []int
		parts        domain.Vec
		devices      int
		outer, inner domain.Vec // 0 where hosts get no boxes
	}{
		{"one device a host", []int{8, 8, 8}, domain.Vec{2, 3, 4}, 1, domain.Vec{2, 3, 4}, domain.Vec{1, 1, 1}},
		{"one host", []int{8, 8, 8}, domain.Vec{2, 1, 3}, 6, domain.Vec{1, 1, 1}, domain.Vec{2, 1, 3}},
		{"rows", []int{8, 8, 8}, domain.Vec{4, 2, 2}, 4, domain.Vec{1, 2, 2}, domain.Vec{4, 1, 1}},
		{"parts of rows", []int{8, 8, 8}, domain.Vec{4, 2, 2}, 2, domain.Vec{2, 2, 2}, domain.Vec{2, 1, 1}},
		{"rows of two along y", []int{8, 8}, domain.Vec{2, 4, 1}, 4, domain.Vec{1, 2, 1}, domain.Vec{2, 2, 1}},
		{"across axes", []int{8, 8}, domain.Vec{3, 2, 1}, 2, domain.Vec{}, domain.Vec{}},
		{"more than along two axes", []int{8, 9}, domain.Vec{2, 3, 1}, 4, domain.Vec{}, domain.Vec{}},
		{"no multiple of a host's devices", []int{8, 8}, domain.Vec{3, 1, 1}, 2, domain.Vec{}, domain.Vec{}},
		{"more devices than parts", []int{8, 8}, domain.Vec{2, 1, 1}, 4, domain.Vec{}, domain.Vec{}},
		{"no devices", []int{8, 8}, domain.Vec{2, 1, 1}, 0, domain.Vec{}, domain.Vec{}},
		{"no parts", []int{8, 8}, domain.Vec{0, 1, 1}, 1, domain.Vec{}, domain.Vec{}},
		{"too few layers", []int{8, 8}, domain.Vec{8, 1, 1}, 2, domain.Vec{}, domain.Vec{}},
		{"more parts than points", []int{8, 8}, domain.Vec{9, 1, 1}, 3, domain.Vec{}, domain.Vec{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, err := domain.NewGrid(tc.size, [3]bool{})
			if err != nil {
				t.Fatal(err)
			}
			outer, inner, err := domain.NestedAs(g, tc.parts, tc.devices, domain.UniformRadius(g.Dims, 2))
			if (err != nil) != (tc.outer == domain.Vec{}) || err == nil && (outer != tc.outer || inner != tc.inner) {
				t.Fatalf("hosts %v, devices %v, %v; want %v and %v", outer, inner, err, tc.outer, tc.inner)
			}
			if err != nil {
				return
			}
			hosts := map[domain.Vec]int{} // the host that a box of coordinates belongs to, by the order of ranks
			for rank := range int(tc.parts.Product()) {
				coord := domain.Vec{rank % tc.parts[0], rank / tc.parts[0] % tc.parts[1], rank / tc.parts[0] / tc.parts[1]}
				block := domain.BlockOf(coord, inner)
				if host, known := hosts[block]; known && host != rank/tc.devices {
					t.Errorf("%v belongs to hosts %d and %d", block, host, rank/tc.devices)
				}
				hosts[block] = rank / tc.devices
			}
		})
	}
}
