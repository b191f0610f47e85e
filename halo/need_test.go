package halo

import (
	"strings"
	"testing"

	"github.com/halox/halox/streams"
)

// A GPU has memory of its own; host devices share theirs.
func TestFit(t *testing.T) {
	const gib = 1 << 30
	device := func(b streams.Backend) *streams.Device {
		return &streams.Device{Info: streams.Info{Backend: b, Traits: streams.Traits{Noun: "host device", HostMemory: b == streams.Host}}}
	}
	gpu := func(needs, free int64) *Need {
		return &Need{Device: device(streams.CUDA), Memory: Memory{Fields: needs - gib, Buffers: gib}, Free: free, Total: 100 * gib}
	}
	host := func(needs, free int64) *Need {
		return &Need{Device: device(streams.Host), Memory: Memory{Fields: needs}, Free: free, Total: 100 * gib}
	}
	for _, c := range []struct {
		name  string
		needs []*Need
		says  string
	}{
		{"GPUs that have enough", []*Need{gpu(60*gib, 60*gib), gpu(60*gib, 60*gib)}, ""},
		{"one that has not", []*Need{gpu(60*gib, 60*gib), gpu(61*gib, 60*gib)},
			"cuda 0: the run needs 61 GiB, 60 GiB for fields and 1 GiB for buffers; 60 GiB of 100 GiB are free"},
		{"a host that has enough", []*Need{host(30*gib, 60*gib), host(30*gib, 60*gib)}, ""},
		{"a host that has not", []*Need{host(31*gib, 60*gib), host(30*gib, 60*gib)}, "all host devices together: the run needs 61 GiB"},
		{"nobody knows", []*Need{{Device: device(streams.Host), Memory: Memory{Fields: gib}}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Fit(c.needs)
			if (err == nil) != (c.says == "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
