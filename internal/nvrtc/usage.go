package nvrtc

import (
	"regexp"
	"strconv"
	"strings"
)

// KernelUsage is what one kernel needs of a multiprocessor. Sizes are in
// bytes, a thread's except for Shared, which is a block's static memory.
type KernelUsage struct {
	Name        string // as in the image, mangled unless extern "C"
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

// ParseUsage reads the log of a compilation to a cubin with the option
// --ptxas-options=-v, and gives its kernels in the log's order. Device
// functions that were not inlined have lines of their own, which it skips.
func ParseUsage(log string) []KernelUsage {
	var all []KernelUsage
	described := "" // the function that the properties are of
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
