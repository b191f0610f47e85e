package view

import (
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
)

// A terminal shows a field in half blocks, the first row of pixels at the top, with its walls and in its proportions.
func TestTerminal(t *testing.T) {
	f := indices(t, false, 8, 4)
	f.Read = func(dst []float64, box domain.Box) error { // 1 in the upper half
		for i := range dst {
			dst[i] = float64((box.Lo[1]*8 + i) / 16)
		}
		return nil
	}
	text := test.Must(Terminal(f, Options{}, 16, 30))(t)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 5 || lines[0] != "heat, t = 0.25 (" || strings.Count(text, "▀") != 4*16 {
		t.Fatalf("%q", text)
	}
	for i, line := range lines[1:] { // yellow above violet, whose shades may be rounded
		if want := []string{"\x1b[38;2;25", "\x1b[38;2;6"}[i/2]; !strings.HasPrefix(line, want) || line != lines[1+i/2*2] {
			t.Errorf("line %d is %q", i, line)
		}
	}
	if text = test.Must(Terminal(f, Options{}, 100, 3))(t); !strings.HasPrefix(text, "heat, t = 0.25 (step 7), u from 0 to 1\n") || strings.Count(text, "\n") != 3 || strings.Count(text, "▀") != 2*8 {
		t.Errorf("3 lines: %q", text)
	}
}
