package streams

import (
	"fmt"
	"strings"
)

// Size writes a number of bytes as "3 MiB".
func Size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	n, i := float64(bytes), 0
	for n >= 1024 && i < len(units)-1 {
		n, i = n/1024, i+1
	}
	text := strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
	return text + " " + units[i]
}

// sizes writes what is needed and what there is less of, so that they differ.
func sizes(needed, free int64) (string, string) {
	if n, f := Size(needed), Size(free); n != f {
		return n, f
	}
	return fmt.Sprintf("%d B", needed), fmt.Sprintf("%d B", free)
}
