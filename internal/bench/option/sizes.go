package option

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are what a size may be given in, the longest names first.
var units = []struct {
	name  string
	bytes float64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3},
	{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"k", 1 << 10}, {"B", 1},
}

// Sizes returns the bytes that the values of an option say: whole numbers above 0, such as
// 1024, 1KiB, 1K or 0.5MiB.
func Sizes(name string, texts []string) (all []int64, err error) {
	for _, text := range texts {
		n, err := parseSize(text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", name, err)
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("--%s names none: give sizes, such as 1KiB,1MiB", name)
	}
	return all, nil
}

func parseSize(text string) (int64, error) {
	number, factor := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if rest, found := strings.CutSuffix(number, u.name); found {
			number, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	const most = 1 << 46 // of which a float64 knows every byte
	v, err := strconv.ParseFloat(number, 64)
	if bytes := v * factor; err == nil && bytes >= 1 && bytes <= most && bytes == math.Trunc(bytes) {
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("%q is no size: give a whole number of bytes above 0, such as 65536, 64KiB or 256MiB", text)
}
