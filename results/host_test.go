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

// Metrics have what an axis needs, and their ceilings are metrics of the same unit.
func TestMetrics(t *testing.T) {
	seen := map[Metric]bool{}
	for _, info := range metrics {
		if info.title == "" || info.unit == "" || info.better == 0 || seen[info.metric] || (info.shownUnit == "") != (info.shownFactor == 0) {
			t.Errorf("%+v", info)
		}
		if info.ceiling != "" && info.ceiling.info().unit != info.unit {
			t.Errorf("%s is in %s, its ceiling %s in %q", info.metric, info.unit, info.ceiling, info.ceiling.info().unit)
		}
		seen[info.metric] = true
	}
}
