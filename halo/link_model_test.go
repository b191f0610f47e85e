package halo_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// Every path of every link gets a time that does not fall with the size.
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

// The second time the link model comes from the file; a damaged one is written anew.
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
