//go:build linux && cgo

package packing

import (
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// If the driver gives no access from one GPU to another, or access was not requested, messages are staged
// through the host, unless another path is requested.
func TestPathWithoutPeerAccess(t *testing.T) {
	platform := test.Must(streams.CUDAPlatform(cudafake.Build(t, cudafake.Devices(2))))(t)
	defer platform.Close()
	devices := test.Must(platform.Open(0, 1))(t)
	defer streams.CloseAll(devices)
	var sides []Side
	for _, d := range devices {
		m := test.Must(d.Alloc(64))(t)
		sides = append(sides, Side{Packer: &Packer{device: d}, Place: Place{Data: m.All()}})
	}
	check := func(what string, want, path p2p.Path) {
		t.Helper()
		o := TransferOptions{Path: want}.withDefaults(sides[1], sides[0])
		if o.Path != path {
			t.Errorf("%s, wanted %q: path %s, not %s", what, want, o.Path, path)
		}
	}
	check("no access", "", p2p.Staged)
	check("no access", p2p.Auto, p2p.Staged)
	check("no access", p2p.Peer, p2p.Peer)
	test.Check(t, devices[0].EnablePeer(devices[1]))
	check("access", "", p2p.Direct)
	check("access", p2p.Staged, p2p.Staged)
}
