//go:build linux && cgo

package p2p

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/streams"
)

// fakeGPUs opens two GPUs of a fake driver. After the test no objects may be left.
func fakeGPUs(t *testing.T) (*cudafake.Fake, []*streams.Device) {
	t.Helper()
	library := cudafake.Build(t)
	fake := cudafake.Inspect(t, library)
	platform := test.Must(streams.CUDAPlatform(library))(t)
	devices := test.Must(platform.Open())(t)
	t.Cleanup(func() {
		test.Report(t, errors.Join(streams.CloseAll(devices), platform.Close()))
		if live := fake.Live(); live != (cudafake.Live{}) {
			t.Errorf("objects left: %+v", live)
		}
	})
	return fake, devices
}

// Each case modifies only the link from device 0 to device 1.
func TestDiscover(t *testing.T) {
	for _, tc := range []struct {
		name   string
		spoil  func(f *cudafake.Fake)
		access bool
		why    string // why the link is not usable; "" if it is
	}{
		{"peer access", func(*cudafake.Fake) {}, true, ""},
		{"enabled before", failOnce("cuCtxEnablePeerAccess", cuda.CodePeerAlreadyEnabled), true, ""},
		{"no peer access", func(f *cudafake.Fake) { f.SetLink(0, 1, cudafake.LinkClosed) }, false,
			"the driver does not allow peer access"},
		{"access cannot be enabled", failOnce("cuCtxEnablePeerAccess", cuda.CodeTooManyPeers), false,
			"device cuda 0: enable access to cuda 1: device 0: cuCtxEnablePeerAccess: "},
		{"copies fail", failOnce("cuMemcpyPeerAsync", cuda.CodePeerUnsupported), true,
			"p2p: probe the link from device cuda 0 to cuda 1: device cuda 0: copy to cuda 1 "},
		{"it corrupts data", func(f *cudafake.Fake) { f.SetLink(0, 1, cudafake.LinkLying) }, true,
			"the link from device cuda 0 to cuda 1 corrupts data: of 1048576 bytes sent, 1 arrived wrong, the first at 524288"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake, d := fakeGPUs(t)
			tc.spoil(fake)
			links := test.Must(Discover(t.Context(), d, nil))(t)
			if back := links.Between(d[1], d[0]); !back.Access || !back.Usable || back.Why != "" {
				t.Errorf("the reverse link: got %+v", back)
			}
			link := links.Between(d[0], d[1])
			if link.Access != tc.access || link.Usable != (tc.why == "") || !strings.HasPrefix(link.Why, tc.why) {
				t.Errorf("got %+v", link)
			}
			if live := fake.Live(); live != (cudafake.Live{Contexts: 2}) {
				t.Errorf("objects left by the probes: %+v", live)
			}
			chooses(t, links, d, link)
		})
	}
}

func failOnce(call string, code cuda.Code) func(*cudafake.Fake) {
	return func(f *cudafake.Fake) { f.Fail(call, int(code), 0, 1) }
}

// chooses checks that messages use the link only if it is usable.
func chooses(t *testing.T, links *Links, d []*streams.Device, link *Link) {
	t.Helper()
	path, why, err := links.Choose(Auto, d[0], d[1], MessageShape{Bytes: 8})
	test.Check(t, err)
	_, _, refusal := links.Choose(Peer, d[0], d[1], MessageShape{Bytes: 8})
	if link.Usable {
		if refusal != nil {
			t.Fatal(refusal)
		}
		if path != Peer {
			t.Errorf("auto: got %s: %s", path, why)
		}
		return
	}
	if path != Staged || why != link.Why {
		t.Errorf("auto: got %s: %s", path, why)
	}
	if refusal == nil || !strings.Contains(refusal.Error(), link.Why) {
		t.Errorf("peer over a bad link: got %v", refusal)
	}
}

// An error that makes a device unusable ends the search, and names the link.
func TestDiscoverEndsWithAFailedDevice(t *testing.T) {
	for call, says := range map[string]string{
		"cuDeviceCanAccessPeer": "device cuda 0: query access to cuda 1: ",
		"cuCtxEnablePeerAccess": "device cuda 0: enable access to cuda 1: ",
		"cuMemcpyPeerAsync":     "p2p: probe the link from device cuda 0 to cuda 1: device cuda 0: copy to cuda 1 ",
		"cuStreamQuery":         "p2p: probe the link from device cuda 0 to cuda 1: device cuda 1: wait for a stream: ",
	} {
		t.Run(call, func(t *testing.T) {
			fake, d := fakeGPUs(t)
			failOnce(call, cuda.CodeNVLinkError)(fake)
			_, err := Discover(t.Context(), d, nil)
			if !errors.Is(err, cuda.CodeNVLinkError) || !strings.HasPrefix(err.Error(), says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// byBusID is a topology that returns its arguments.
type byBusID struct{}

func (byBusID) Link(a, b string) (string, error) {
	if a > b {
		return "", errors.New("not known")
	}
	return a + " " + b, nil
}

func TestKindsUseBusIDs(t *testing.T) {
	_, d := fakeGPUs(t)
	links := test.Must(Discover(t.Context(), d, byBusID{}))(t)
	if kind := links.Between(d[0], d[1]).Kind; kind != "0000:3b:00.0 0000:3c:00.0" {
		t.Errorf("got kind %q", kind)
	}
	if back := links.Between(d[1], d[0]); back.Kind != "" || !back.Usable {
		t.Errorf("without a topology: got %+v", back)
	}
}

func TestRoutesOfGPUs(t *testing.T) {
	fake, d := fakeGPUs(t)
	test.Must(Discover(t.Context(), d, nil))(t)
	before := fake.Calls("cuMemcpyPeerAsync")
	moveBytes(t, d, func(path Path) {
		if peer := fake.Calls("cuMemcpyPeerAsync") - before; peer != 1 {
			t.Errorf("got %d peer copies after path %s", peer, path)
		}
	})
}
