package resultstest

import (
	"time"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/trace"
)

// Trace returns three steps of two devices with two streams each.
func Trace() *trace.Trace {
	const us = time.Microsecond
	t := &trace.Trace{About: trace.About{
		Halox: results.Program{Version: "1.0", Commit: "abc"}, Solver: "heat", Size: []int{64, 32, 16}, Precision: "float64",
		Scheme: "two-stream", Order: "left-right", Path: "peer",
	}}
	for i, name := range []string{"GPU 0, NVIDIA H200", "GPU 1, NVIDIA H200"} {
		boundary, interior := trace.Stream{Name: "boundary"}, trace.Stream{Name: "interior"}
		at := time.Duration(i) * 3 * us
		for step := range int64(3) {
			add := func(s *trace.Stream, name, category string, took time.Duration) {
				o := trace.Operation{Name: name, Category: category, Begin: at, End: at + took, Step: 6 + step}
				if n := len(s.Operations); n > 0 {
					o.Begin = max(at, s.Operations[n-1].End)
					o.End = o.Begin + took
				}
				if category == "copy" {
					o.Bytes, o.With = 4096, "GPU 1, NVIDIA H200"
				}
				s.Operations = append(s.Operations, o)
			}
			add(&boundary, "wait", "wait", us)
			add(&boundary, "sweep boundary", "sweep", 4*us)
			add(&interior, "wait", "wait", us/2)
			add(&interior, "sweep interior", "sweep", 21*us+123)
			add(&boundary, "pack", "pack", 3*us)
			add(&boundary, "copy to peer", "copy", 9*us)
			add(&boundary, "wait", "wait", 2*us)
			add(&boundary, "unpack", "unpack", 5*us)
			add(&boundary, "store", "exchange", 2*us)
			add(&interior, "norms", "other", 2*us)
			at += 30 * us
		}
		t.Devices = append(t.Devices, trace.Device{Name: name, Within: 1500 * time.Nanosecond, Streams: []trace.Stream{boundary, interior}})
	}
	return t
}
