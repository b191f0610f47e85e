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
