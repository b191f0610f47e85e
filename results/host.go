package results

import (
	"bufio"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// A Host is the machine that a run was made on. What is unknown is left out.
type Host struct {
	Name        string `json:"name,omitempty"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	CPU         string `json:"cpu,omitempty"`          // model, as the system calls it
	Cores       int    `json:"cores"`                  // logical cores that this process may use
	MemoryBytes int64  `json:"memory_bytes,omitempty"` // physical memory
	Driver      string `json:"driver,omitempty"`       // version of the GPU driver, where there is one
	CUDA        string `json:"cuda,omitempty"`         // CUDA version of that driver
}

// Machine describes the host that this process runs on. The CPU model and the
// memory are known on Linux only; Driver and CUDA are for the caller to fill in.
func Machine() Host {
	name, _ := os.Hostname()
	return Host{
		Name:        name,
		OS:          runtime.GOOS,
		Arch:        runtime.GOARCH,
		CPU:         procValue("/proc/cpuinfo", "model name"),
		Cores:       runtime.NumCPU(),
		MemoryBytes: kibibytes(procValue("/proc/meminfo", "MemTotal")),
	}
}

// procValue looks a key up in a file under /proc; where there is no such file
// the value is empty.
func procValue(path, key string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	return colonValue(file, key)
}

// colonValue returns what follows the first "key :" in lines of that form.
func colonValue(r io.Reader, key string) string {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		name, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kibibytes turns a size such as "16384 kB", by which the kernel means units of
// 1024 bytes, into bytes; 0 where it is of another form.
func kibibytes(size string) int64 {
	digits, found := strings.CutSuffix(size, " kB")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil {
		return 0
	}
	return n << 10
}
