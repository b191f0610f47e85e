package nvrtc

import (
	"regexp"
	"strconv"
	"strings"
)

// KernelUsage is the resource usage of a kernel. Sizes are in bytes per thread, except for Shared, the static memory
// per block.
type KernelUsage struct {
	Name        string // name in the image, mangled unless extern "C"
	Registers   int
	SpillStores int
	SpillLoads  int
	StackFrame  int
	Shared      int
}

var (
	entryLine      = regexp.MustCompile(`Compiling entry function '([^']+)'`)
	propertiesLine = regexp.MustCompile(`Function properties for (\S+)`)
	stackLine      = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	registersUsed  = regexp.MustCompile(`Used (\d+) registers`)
	sharedUsed     = regexp.MustCompile(`(\d+)(?:\+\d+)? bytes smem`)
)

// ParseUsage parses the log of a compilation to a cubin with the option --ptxas-options=-v, and returns its kernels in
// the order of the log. It skips device functions that were not inlined.
func ParseUsage(log string) []KernelUsage {
	var all []KernelUsage
	described := "" // function of the properties
	for line := range strings.Lines(log) {
		if m := entryLine.FindStringSubmatch(line); m != nil {
			all = append(all, KernelUsage{Name: m[1]})
		} else if m := propertiesLine.FindStringSubmatch(line); m != nil {
			described = m[1]
		} else if len(all) > 0 && described == all[len(all)-1].Name {
			all[len(all)-1].read(line)
		}
	}
	return all
}

func (u *KernelUsage) read(line string) {
	if m := stackLine.FindStringSubmatch(line); m != nil {
		u.StackFrame, u.SpillStores, u.SpillLoads = number(m[1]), number(m[2]), number(m[3])
	}
	if m := registersUsed.FindStringSubmatch(line); m != nil {
		u.Registers = number(m[1])
	}
	if m := sharedUsed.FindStringSubmatch(line); m != nil {
		u.Shared = number(m[1])
	}
}

// number reads digits that a pattern has matched.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
