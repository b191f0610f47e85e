package results

import (
	"runtime"
	"testing"
)

func TestMachine(t *testing.T) {
	host := Machine()
	if host.OS != runtime.GOOS || host.Arch != runtime.GOARCH || host.Cores < 1 {
		t.Errorf("Machine() = %+v, want this system and at least a core", host)
	}
	if runtime.GOOS == "linux" && host.MemoryBytes < 1<<20 {
		t.Errorf("%d bytes of memory on Linux", host.MemoryBytes)
	}
	if host.Driver != "" || host.CUDA != "" {
		t.Errorf("Machine() = %+v, want driver and CUDA left to the caller", host)
	}
}
