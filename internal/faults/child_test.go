package faults

import (
	"testing"

	"github.com/halox/halox/streams"
)

// Devices keep the names of the first child when others are hidden, which changes their numbers.
func TestNames(t *testing.T) {
	known := []device{{"cuda 1", "0:2", "GPU-b"}, {"cuda 3", "0:4", "GPU-d"}}
	second := &streams.Device{Info: streams.Info{Backend: streams.CUDA, ID: 1, PCIBusID: "0:4", UUID: "GPU-d"}}
	for _, tc := range []struct {
		plan  Plan
		named string // the device that this child calls cuda 1
		env   string
	}{
		{Plan{}, "cuda 1", ""},
		{Plan{Devices: known}, "cuda 1", "CUDA_VISIBLE_DEVICES=GPU-b,GPU-d"},
		{Plan{Devices: known, Hidden: true, Without: []string{"cuda 0"}}, "cuda 3", "CUDA_VISIBLE_DEVICES=GPU-b,GPU-d"},
		{Plan{Devices: []device{{"host 0", "", ""}, {"host 1", "", ""}}, Without: []string{"host 2"}}, "cuda 1", ""},
	} {
		c := &Child{Plan: tc.plan}
		if d, e := c.device(second), c.named("cuda 1"); d != (device{tc.named, "0:4", "GPU-d"}) || e.Name != tc.named {
			t.Errorf("%+v: %+v, %+v", tc.plan, d, e)
		}
		p, env := tc.plan.hide()
		if hides := tc.env != ""; p.Hidden != hides || hides && (env[0] != tc.env || p.Without != nil) || !hides && len(p.Without) != len(tc.plan.Without) {
			t.Errorf("%+v: %+v, %v", tc.plan, p, env)
		}
	}
}
