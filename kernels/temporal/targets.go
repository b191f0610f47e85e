package temporal

import (
	"strconv"
	"strings"
)

// targets are the numbers of those for which the compiler has registers for a kernel, from one up to but without another; none: all.
type targets struct{ from, below int }

// has reports whether a device, as "sm_90", is one of them.
func (t targets) has(arch string) bool {
	n, _ := strconv.Atoi(strings.TrimPrefix(arch, "sm_"))
	return n >= t.from && (t.below == 0 || n < t.below)
}

var (
	everywhere = targets{}
	upToHopper = targets{0, 100}
	hopperOnly = targets{90, 100}
	fromHopper = targets{90, 0}
)
