package halotest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/halotest"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// newCase is an exchange of one field over two subdomains of a ring.
func newCase(t *testing.T, s halo.Spec) halotest.Case {
	t.Helper()
	set := testdevices.Host(t, 2)
	grid := test.Must(domain.NewGrid([]int{40, 41}, []bool{false, true}))(t)
	cut := test.Must(domain.Decompose(grid, domain.Vec{1, 2, 1}))(t)
	place := test.Must(halo.Place(cut, set.Devices))(t)
	return halotest.Case{Placement: place, Links: set.Links, Compiler: set.Compiler, Path: p2p.Peer, Specs: []halo.Spec{s}}
}

func nothing(*halo.Exchanger, []*streams.Stream) error { return nil }

// Every ghost is wrong before an exchange, even with one-byte elements: an exchange that does nothing fails
// at the first ghost.
func TestEveryGhostIsWrongAtFirst(t *testing.T) {
	for _, e := range []domain.Element{halo.Bytes(1), halo.Bytes(3), halo.Float32, halo.Complex128} {
		c := newCase(t, halo.Spec{Name: "u", Element: e, Width: domain.UniformRadius(2, 1)})
		if err := c.Run(); err != nil {
			t.Errorf("%s: %v", e, err)
		}
		c.Exchange = nothing
		err := c.Run()
		test.Says(t, err, "point [0 -1 0] is "+strings.Repeat("a5", e.Size()))
	}
}

// A program that embeds halo can check its own grid, fields and devices.
func Example() {
	ctx := context.Background()
	session, err := halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: 4})
	if err != nil {
		panic(err)
	}
	defer session.Close()
	u := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 2), Connectivity: halo.Corners}
	place, err := session.Cut(ctx, halo.Cutting{
		Size: []int{31, 17}, Periodic: []bool{true, false}, Fields: []halo.Spec{u}, Parts: []int{2, 2},
	})
	if err != nil {
		panic(err)
	}
	c := halotest.Case{Placement: place, Links: session.Links, Compiler: session.Compiler, Specs: []halo.Spec{u}}
	fmt.Println(c.Run())
	// Output: <nil>
}
