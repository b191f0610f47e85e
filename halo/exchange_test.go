package halo

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

const (
	poison    = -7
	testLimit = 30 * time.Second
)

// trial is one exchange to be tried.
type trial struct {
	set  *testdevices.Set
	cut  *domain.Decomposition
	w    domain.Radius
	path p2p.Path
}

// number is what geometry says of an owned point: its place in the grid, plus
// one.
func (c trial) number(p domain.Vec) int64 {
	g := c.cut.Grid
	return 1 + int64(p[0]) + int64(g.Size[0])*(int64(p[1])+int64(g.Size[1])*int64(p[2]))
}

// expected returns what a ghost holds after a face exchange: the number of the
// point it stands for if it lies behind exactly one face with something behind
// it, else its poison.
func (c trial) expected(own domain.Box, p domain.Vec) int64 {
	outside := 0
	for a, n := range c.cut.Grid.Size {
		if p[a] < own.Lo[a] || p[a] >= own.Hi[a] {
			outside++
		}
		if p[a] < 0 || p[a] >= n {
			if !c.cut.Grid.Periodic[a] {
				return poison
			}
			p[a] = (p[a] + n) % n
		}
	}
	if outside > 1 {
		return poison
	}
	return c.number(p)
}

// run fills a field with numbers, poisons its ghosts, exchanges it and looks at
// every point, ghosts of edges and corners included.
func (c trial) run() error {
	devices := make([]*streams.Device, len(c.cut.Subdomains))
	for i := range devices {
		devices[i] = c.set.Devices[i]
	}
	place, err := Place(c.cut, devices)
	if err != nil {
		return err
	}
	plan, err := NewPlan(place, c.w, 8, c.set.Links, c.path)
	if err != nil {
		return err
	}
	f, err := NewField(place, c.w, 8)
	if err != nil {
		return err
	}
	defer f.Close()
	x, err := NewExchanger(plan, c.set.Compiler, f)
	if err != nil {
		return err
	}
	defer x.Close()
	if err := c.fill(f); err != nil {
		return err
	}
	before := func(own domain.Box, p domain.Vec) int64 {
		if own.Contains(p) {
			return c.number(p)
		}
		return poison
	}
	if err := c.look(f, before); err != nil {
		return fmt.Errorf("before the exchange: %w", err)
	}
	if err := exchange(x); err != nil {
		return err
	}
	return c.look(f, c.expected)
}

func (c trial) fill(f *Field) error {
	return Fill(f, func(rank int) Row[int64] {
		return func(values []int64, at domain.Vec) {
			for i := range values {
				values[i] = poison
				if c.cut.Subdomains[rank].Box.Contains(at) {
					values[i] = c.number(at)
				}
				at[0]++
			}
		}
	})
}

// look compares every point of the field with what is wanted. Where a message
// travels as it lies, ghosts of idle axes in it travel along; these are nobody's.
func (c trial) look(f *Field, want func(own domain.Box, p domain.Vec) int64) error {
	for rank, part := range f.Parts {
		st, err := stageOf[int64](f, rank)
		if err != nil {
			return err
		}
		own := part.Layout.Owned
		err = st.eachPiece(own.Grow(f.Width), func(piece domain.Box) error {
			if err := st.download(piece); err != nil {
				return err
			}
			offset, _ := part.Layout.Range(piece)
			for z := piece.Lo[2]; z < piece.Hi[2]; z++ {
				for y := piece.Lo[1]; y < piece.Hi[1]; y++ {
					for x := piece.Lo[0]; x < piece.Hi[0]; x++ {
						p := domain.Vec{x, y, z}
						got := st.values[part.Layout.Offset(p)-offset]
						if w := want(own, p); got != w {
							return fmt.Errorf("point %v of subdomain %d, which owns %v: got %d, want %d", p, rank, own, got, w)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// exchange carries out all messages, a stream a subdomain.
func exchange(x *Exchanger) error {
	crew := streams.NewCrew(1, testLimit)
	var open streams.Closers
	defer open.Close()
	var s []*streams.Stream
	for _, d := range x.plan.Placement.Devices {
		stream, err := d.NewStream(streams.Normal)
		if err != nil {
			return err
		}
		open.Add(stream)
		s = append(s, stream)
	}
	for i, m := range x.plan.Messages {
		if err := x.Transfer(0, i).Send(s[m.From]); err != nil {
			return err
		}
	}
	for i, m := range x.plan.Messages {
		if err := x.Transfer(0, i).Receive(crew, s[m.To]); err != nil {
			return err
		}
	}
	for _, stream := range s {
		if err := stream.Sync(testLimit); err != nil {
			return err
		}
	}
	return nil
}

// Over random grids, cuts, periodicities and asymmetric widths, every ghost of
// a face gets the value that geometry says, and no other point changes.
func TestExchangeAgreesWithGeometry(t *testing.T) {
	testdevices.Each(t, 8, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			c := trial{set: set, path: rapid.SampledFrom([]p2p.Path{p2p.Peer, p2p.Staged}).Draw(t, "path")}
			dims := rapid.IntRange(2, 3).Draw(t, "dims")
			var periodic [3]bool
			size, parts := make([]int, dims), domain.Vec{1, 1, 1}
			for a := range dims {
				size[a] = rapid.IntRange(1, 12).Draw(t, "size")
				periodic[a] = rapid.Bool().Draw(t, "periodic")
				free := len(set.Devices) / int(parts.Product())
				parts[a] = rapid.IntRange(1, min(3, size[a], free)).Draw(t, "parts")
				most := min(3, size[a]/parts[a])
				c.w.Minus[a] = rapid.IntRange(0, most).Draw(t, "minus")
				c.w.Plus[a] = rapid.IntRange(0, most).Draw(t, "plus")
			}
			g, err := domain.NewGrid(size, periodic)
			if err != nil {
				t.Fatal(err)
			}
			if c.cut, err = domain.Decompose(g, parts); err != nil {
				t.Fatal(err)
			}
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func TestPlan(t *testing.T) {
	set := testdevices.Host(t, 4)
	grid := func(periodic [3]bool, parts domain.Vec) *Placement {
		g, err := domain.NewGrid([]int{8, 6, 12}, periodic)
		if err != nil {
			t.Fatal(err)
		}
		d, err := domain.Decompose(g, parts)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Place(d, set.Devices[:len(d.Subdomains)])
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	w := domain.UniformRadius(3, 1)
	for _, c := range []struct {
		name       string
		place      *Placement
		messages   int
		bytes      int64
		path       string
		contiguous int
	}{
		{"alone", grid([3]bool{}, domain.Vec{1, 1, 1}), 0, 0, "", 0},
		{"its own neighbour", grid([3]bool{false, true, false}, domain.Vec{1, 1, 1}), 2, 0, "", 0},
		{"a stack", grid([3]bool{}, domain.Vec{1, 1, 4}), 6, 6 * 8 * 6 * 8, "peer", 6},
		{"a ring", grid([3]bool{false, false, true}, domain.Vec{1, 1, 4}), 8, 8 * 8 * 6 * 8, "peer", 8},
		{"columns", grid([3]bool{}, domain.Vec{2, 1, 2}), 8, 4*6*6*8 + 4*4*6*8, "peer", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, err := NewPlan(c.place, w, 8, set.Links, p2p.Auto)
			if err != nil {
				t.Fatal(err)
			}
			contiguous := 0
			for _, m := range plan.Messages {
				if m.Contiguous {
					contiguous++
				}
			}
			if len(plan.Messages) != c.messages || plan.Bytes() != c.bytes || plan.Path() != c.path || contiguous != c.contiguous {
				t.Errorf("%d messages, %d contiguous, %d bytes over %q", len(plan.Messages), contiguous, plan.Bytes(), plan.Path())
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	set := testdevices.Host(t, 2)
	g, _ := domain.NewGrid([]int{8, 8, 2}, [3]bool{})
	d, _ := domain.Decompose(g, domain.Vec{1, 1, 2})
	if _, err := Place(d, set.Devices[:1]); err == nil {
		t.Error("one device took two subdomains")
	}
	p, err := Place(d, set.Devices)
	if err != nil {
		t.Fatal(err)
	}
	wide := domain.UniformRadius(3, 2)
	if _, err := NewPlan(p, wide, 8, set.Links, p2p.Auto); err == nil {
		t.Error("a subdomain of 1 layer sends 2")
	}
	if _, err := NewField(p, wide, 8); err == nil {
		t.Error("a field has ghosts that nobody can send")
	}
	w := domain.UniformRadius(3, 1)
	plan, err := NewPlan(p, w, 8, set.Links, p2p.Auto)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewField(p, domain.Radius{}, 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewExchanger(plan, set.Compiler, other); err == nil {
		t.Error("a field without ghosts is exchanged")
	}
	narrow, err := NewField(p, w, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewExchanger(plan, set.Compiler, narrow); err == nil {
		t.Error("4-byte elements are exchanged by a plan for 8")
	}
	if err := Read(make([]int64, 3), other, g.Box()); err == nil {
		t.Error("a field was read into 3 elements")
	}
	if err := Read(make([]float32, g.Points()), other, g.Box()); err == nil {
		t.Error("8-byte elements were read as 4-byte ones")
	}
}
