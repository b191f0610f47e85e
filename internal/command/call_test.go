package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/halox/halox/internal/test"
)

// Errors and verdicts have colors on terminals, unless NO_COLOR is set or a launcher makes the terminal.
func TestColors(t *testing.T) {
	defer func(was func(int) bool) { isTerminal = was }(isTerminal)
	const plain, colored = "ok    a\nFAIL  b\nokay\nwrong\n", "\x1b[32mok\x1b[0m    a\n\x1b[31mFAIL\x1b[0m  b\nokay\n\x1b[31mwrong\x1b[0m\n"
	for _, tc := range []struct {
		terminal, plain bool
		noColor, want   string
	}{{true, false, "", colored}, {true, true, "", plain}, {true, false, "1", plain}, {false, false, "", plain}} {
		isTerminal = func(int) bool { return tc.terminal }
		t.Setenv("NO_COLOR", tc.noColor)
		t.Setenv("TERM", "xterm")
		file := test.Must(os.Create(filepath.Join(t.TempDir(), "out")))(t)
		c := &Call{stdout: &checkedOutput{w: file}, stderr: file, plain: tc.plain}
		for _, line := range []string{"ok    a", "FAIL  b", "okay"} {
			fmt.Fprintln(c.Verdicts(c.stdout), line)
		}
		c.PrintError("", errors.New("wrong"))
		test.Check(t, file.Close())
		if got := test.Must(os.ReadFile(file.Name()))(t); string(got) != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}
