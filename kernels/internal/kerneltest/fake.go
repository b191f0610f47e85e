//go:build linux && cgo

package kerneltest

import (
	"testing"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/streams"
)

// FakeGPU opens the only GPU of a fake driver.
func FakeGPU(t *testing.T) (*cudafake.Fake, *streams.Device) {
	t.Helper()
	library := cudafake.Build(t, cudafake.Devices(1))
	platform := test.Must(streams.CUDAPlatform(library))(t)
	devices := test.Must(platform.Open())(t)
	t.Cleanup(func() { streams.CloseAll(devices) })
	return cudafake.Inspect(t, library), devices[0]
}
