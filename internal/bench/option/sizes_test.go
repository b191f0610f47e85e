package option

import (
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "1024": 1024, "1KiB": 1024, "1K": 1024, "1k": 1024, "0.5KiB": 512, " 3 MiB ": 3 << 20, "2GB": 2e9, "256MiB": 256 << 20, "1e3": 1000, "7B": 7} {
		if n, err := parseSize(text); n != want || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}
