package nvrtc_test

import (
	"slices"
	"testing"

	"github.com/halox/halox/internal/nvrtc"
)

func TestParseUsage(t *testing.T) {
	const log = `usage.cu(3): warning #177-D: variable "x" was declared but never referenced
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z4edgePf' for 'sm_90'
ptxas info    : Function properties for _Z4edgePf
    24 bytes stack frame, 20 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 49152 bytes smem, 400 bytes cmem[0]
ptxas info    : Function properties for helper
    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'inner' for 'sm_90'
ptxas info    : Function properties for inner
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
`
	want := []nvrtc.KernelUsage{
		{Name: "_Z4edgePf", Registers: 255, SpillStores: 20, SpillLoads: 16, StackFrame: 24, Shared: 49152},
		{Name: "inner", Registers: 8},
	}
	if got := nvrtc.ParseUsage(log); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := nvrtc.ParseUsage("no ptxas here"); len(got) != 0 {
		t.Errorf("got %+v from a log without usage", got)
	}
}
