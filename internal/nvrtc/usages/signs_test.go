package usages_test

import (
	"strings"
	"testing"

	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/nvrtc/usages"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

// A kernel of which NVRTC 13.0 loses a sign is refused, and others are not.
func TestLostSigns(t *testing.T) {
	testdevices.Once(t)
	c := test.Must(nvrtc.Open(testdevices.NVRTC(t)))(t)
	for expression, lost := range map[string]bool{
		"max(a, max(b, -c))":    true,
		"min(b, min(-c, a))":    true,
		"max(-a, max(b, c))":    true,
		"max(a, min(b, -c))":    false,
		"max(a, b - c)":         false,
		"max(a + c, b + c) - c": false,
	} {
		text := `extern "C" __global__ void k(int *p) { const int a = p[0], b = p[1], c = p[2]; p[3] = ` + expression + `; }`
		_, err := usages.Of(c, t.TempDir(), nvrtc.Source{Name: "k.cu", Text: text}, []string{"--gpu-architecture=sm_90", "-lineinfo"})
		if (err != nil && strings.Contains(err.Error(), "sign")) != lost {
			t.Errorf("%s: %v", expression, err)
		}
	}
}
