//go:build linux && cgo

package checkpoint_test

import (
	"errors"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/streams"
)

// GPUs without memory for a copy of the fields write checkpoints from the fields themselves, and steps wait.
func TestWithoutMemory(t *testing.T) {
	platform := test.Must(streams.CUDAPlatform(cudafake.Build(t, cudafake.Devices(2), cudafake.Memory(3<<19))))(t)
	devices := test.Must(platform.Open())(t)
	defer func() { test.Report(t, errors.Join(streams.CloseAll(devices), platform.Close())) }()
	p := onDevices(t, devices, []int{64, 64, 64}, domain.Vec{1, 1, 2})
	u := checkpoint.Array{Name: "u", Field: test.Must(halo.NewField(p, halo.Spec{Name: "u", Element: halo.Float64}))(t)}
	folder, ctx := t.TempDir(), t.Context()
	w := test.Must(checkpoint.NewWriter(ctx, checkpoint.Options{Folder: folder}, u))(t)
	for step := int64(1); step <= 2; step++ {
		fill(t, u, step)
		test.Check(t, w.Write(ctx, step, attributesOf(step), u))
		if s := w.Status(); s.Writing || s.Step != step || s.Waited != int(step) || s.Err != nil {
			t.Errorf("status %+v", s)
		}
	}
	fill(t, u, 3)
	test.Check(t, w.Close(ctx), finds(t, folder, 2).Read(ctx, u.Name, u.Field))
	compare(t, u, 2)
}
