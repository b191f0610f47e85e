package results

import (
	"runtime"
	"strings"
	"testing"
)

func TestMachine(t *testing.T) {
	host := Machine()
	if host.OS != runtime.GOOS || host.Arch != runtime.GOARCH || host.Cores < 1 {
		t.Errorf("Machine() = %+v, want this system and at least a core", host)
	}
	if runtime.GOOS == "linux" && host.MemoryBytes <= 0 {
		t.Error("no memory size on Linux")
	}
	if host.Driver != "" || host.CUDA != "" {
		t.Errorf("Machine() = %+v, want driver and CUDA left to the caller", host)
	}
}

func TestColonValue(t *testing.T) {
	const cpuinfo = "processor\t: 0\nmodel\t\t: 106\nmodel name\t: A: CPU @ 2 GHz\nmodel name\t: another\n"
	for key, want := range map[string]string{"model name": "A: CPU @ 2 GHz", "model": "106", "flags": ""} {
		if got := colonValue(strings.NewReader(cpuinfo), key); got != want {
			t.Errorf("colonValue(%q) = %q, want %q", key, got, want)
		}
	}
	if got := procValue("/nowhere/cpuinfo", "model name"); got != "" {
		t.Errorf("procValue of no file = %q, want nothing", got)
	}
}

func TestKibibytes(t *testing.T) {
	for size, want := range map[string]int64{"16384 kB": 16 << 20, "16384": 0, "": 0, "many kB": 0} {
		if got := kibibytes(size); got != want {
			t.Errorf("kibibytes(%q) = %d, want %d", size, got, want)
		}
	}
}
