package p2p_test

import (
	"strings"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Nil arguments are errors.
func TestNilIsAnError(t *testing.T) {
	set := testdevices.Host(t, 2)
	d := set.Devices
	nobody := []*streams.Device{d[0], nil}
	of := func(_ any, err error) error { return err }
	choose := func(_ p2p.Path, _ string, err error) error { return err }
	var none *p2p.Links
	span := streams.Span{Length: 8}
	for name, c := range map[string]struct {
		says string
		err  error
	}{
		"links of no device":      {"device is nil", of(p2p.Discover(t.Context(), nobody, nil))},
		"a model of no device":    {"device is nil", of(p2p.LoadLinkModel(t.TempDir(), nobody, ""))},
		"a path from no device":   {"device is nil", choose(set.Links.Choose(p2p.Auto, nil, d[0], p2p.MessageShape{}))},
		"a path to no device":     {"device is nil", choose(set.Links.Choose(p2p.Auto, d[0], nil, p2p.MessageShape{}))},
		"a path over no links":    {"was not probed", choose(none.Choose(p2p.Auto, d[0], d[1], p2p.MessageShape{}))},
		"a probe of no device":    {"device is nil", p2p.Probe(nil, d[0])},
		"a route between nothing": {"spans must be valid and of equal length, got no memory and no memory", of(p2p.NewRoute(p2p.Staged, span, span))},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error with %q", name, c.err, c.says)
		}
	}
}
