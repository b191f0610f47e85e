// Package exampletest has the common parts of the tests of examples.
package exampletest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// Conform runs an example with every scheme, over every path of the scheme, on 1 to 4 CPU devices and on up to 4 GPUs.
// Each run must have the given checksum. Schemes may reject steps that they do not support: ranks those of several
// stages, blocked those that do not go from one time level to the next.
func Conform(t *testing.T, e example.Steps, size []int, steps int64, want uint32) {
	for _, backend := range []streams.Backend{streams.Host, streams.CUDA} {
		t.Run("backend="+string(backend), func(t *testing.T) {
			for _, devices := range testdevices.Some(2, []int{1, 2, 3, 4}) {
				t.Run(fmt.Sprintf("devices=%d", devices), func(t *testing.T) {
					session := open(t, backend, devices)
					for _, o := range ways(devices) {
						o.Limit = 20 * time.Minute
						t.Run(fmt.Sprintf("scheme=%s/order=%s/path=%s", o.Scheme, o.Order, o.Path), func(t *testing.T) {
							o.Steps = steps
							got, err := e.Run(t.Context(), session, size, o, io.Discard)
							if errors.Is(err, scheme.ErrUnsuited) && mayRefuse(o.Scheme, err) {
								return
							}
							if err != nil {
								t.Fatal(err)
							}
							if got != want {
								t.Errorf("checksum %08X, the reference has %08X", got, want)
							}
						})
					}
				})
			}
		})
	}
}

// refusals lists parts of the errors of schemes that reject a step.
var refusals = map[scheme.Scheme][]string{
	scheme.Ranks:   {"runs steps of one stage"},
	scheme.Blocked: {"runs steps ", "variables of two levels"},
}

func mayRefuse(s scheme.Scheme, err error) bool {
	return slices.ContainsFunc(refusals[s], func(reason string) bool { return strings.Contains(err.Error(), reason) })
}

// ways returns every scheme with its orders and paths; a single device sends nothing.
func ways(devices int) (all []scheme.Options) {
	for _, name := range append(scheme.All(), scheme.Auto) {
		needs := name.Needs() // none for auto
		for _, order := range append(needs.Orders, "")[:max(1, len(needs.Orders))] {
			paths := p2p.Paths()
			if devices == 1 || name == scheme.Auto {
				paths = []p2p.Path{p2p.Auto}
			}
			for _, path := range paths {
				if needs.CheckPath(name, path) == nil {
					all = append(all, scheme.Options{Scheme: name, Order: order, Path: path})
				}
			}
		}
	}
	return all
}

// open opens devices for a test, which is skipped if there are too few.
func open(t *testing.T, backend streams.Backend, n int) *halo.Session {
	t.Helper()
	session, err := halo.Open(t.Context(), halo.Devices{Backend: backend, Count: n})
	var few *halo.OptionError
	if errors.Is(err, streams.ErrNoDriver) || errors.As(err, &few) && backend == streams.CUDA {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return session
}
