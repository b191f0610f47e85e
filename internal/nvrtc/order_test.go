package nvrtc

import (
	"cmp"
	"testing"
)

func TestCompareVersions(t *testing.T) {
	for _, tc := range []struct{ name, older, newer string }{
		{"of a file", "/lib/libnvrtc.so.12.9", "/lib/libnvrtc.so.12.10"},
		{"of a file with a version and one without", "/lib/libnvrtc.so", "/lib/libnvrtc.so.12"},
		{"of a file, whatever its folder", "/usr/local/cuda-13.0/lib/libnvrtc.so.12", "/usr/local/cuda-12.9/lib/libnvrtc.so.13"},
		{"of a folder", "/usr/local/cuda-12.9/lib64/libnvrtc.so", "/usr/local/cuda-12.10/lib/libnvrtc.so"},
		{"of a folder, not of the machine", "/usr/local/cuda/targets/x86_64-linux/lib/libnvrtc.so.13",
			"/usr/local/cuda-13.0/targets/x86_64-linux/lib/libnvrtc.so.13"},
		{"none", "/a/libnvrtc.so", "/b/libnvrtc.so"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, c := range []struct {
				a, b string
				want int
			}{{tc.older, tc.newer, -1}, {tc.newer, tc.older, 1}, {tc.newer, tc.newer, 0}} {
				if got := cmp.Compare(compareVersions(c.a, c.b), 0); got != c.want {
					t.Errorf("%s against %s: %d, not %d", c.a, c.b, got, c.want)
				}
			}
		})
	}
}
