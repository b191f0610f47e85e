package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/halox/halox/internal/interrupt"
)

// Call is a command line that runs.
type Call struct {
	Args    []string
	Verbose bool // flag -v

	stdout *checkedOutput
	stderr io.Writer
	stdin  func() ([]byte, error)
	quiet  bool // flag -q
	json   bool // flag --json
	plain  bool // no colors
	began  bool // the flags and arguments are valid
}

type callKey struct{}

// Of returns the call that a command's context belongs to, an empty one outside of calls.
func Of(ctx context.Context) *Call {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return c
	}
	return &Call{stdout: &checkedOutput{w: io.Discard}, stderr: io.Discard}
}

// Execute runs a command line, prints the error and returns the exit code.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) Code {
	c := &Call{Args: args, stdout: &checkedOutput{w: stdout}, stderr: stderr}
	c.stdin = sync.OnceValues(func() ([]byte, error) { return io.ReadAll(root.InOrStdin()) })
	root.SetArgs(args)
	root.SetOut(c.stdout)
	root.SetErr(stderr)
	err := interrupt.Catch(context.WithValue(ctx, callKey{}, c), stderr).Run(root.ExecuteContext)
	switch unwritten := c.stdout.failed(); {
	case err == nil:
		err = unwritten
	case !c.began && unwritten == nil:
		err = As(Usage, err)
	}
	if err != nil && err.Error() != interrupt.ErrInterrupted.Error() {
		c.PrintError("", err)
	}
	return CodeOf(err)
}

// begin applies the flags of all commands. RunE follows.
func (c *Call) begin(cmd *cobra.Command) {
	c.quiet, _ = cmd.Flags().GetBool("quiet")
	c.json, _ = cmd.Flags().GetBool("json")
	c.Verbose, _ = cmd.Flags().GetBool("verbose")
	c.began = true
	if c.quiet || c.json {
		cmd.Root().SetOut(io.Discard)
	}
	if c.quiet {
		cmd.Root().SetErr(io.Discard)
	}
	if c.Verbose {
		interrupt.Verbose(cmd.Context())
	}
}

// NoColors turns colors off: Open MPI gives processes a terminal that is none.
func (c *Call) NoColors() { c.plain = true }

// PrintError prints an error, even with -q. who names the process, "" if that is clear.
func (c *Call) PrintError(who string, err error) {
	text := err.Error()
	if !c.plain && isColored(c.stderr) {
		text = paint(red, text)
	}
	fmt.Fprintln(c.stderr, who+text)
}

// Warn prints a warning, except with -q.
func (c *Call) Warn(warning any) {
	if !c.quiet {
		fmt.Fprintln(c.stderr, "halox: warning:", warning)
	}
}

// Stdin returns all of the standard input.
func (c *Call) Stdin() ([]byte, error) { return c.stdin() }

// PrintJSON prints what a command came to, with --json; otherwise nothing. A value with a method Encode is printed as
// that says.
func (c *Call) PrintJSON(value any) error {
	if !c.json {
		return nil
	}
	if v, ok := value.(interface{ Encode() ([]byte, error) }); ok {
		data, err := v.Encode()
		if err == nil {
			_, err = c.stdout.Write(data)
		}
		return err
	}
	e := json.NewEncoder(c.stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// Colors of a terminal.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

func paint(color, text string) string { return "\x1b[" + color + "m" + text + "\x1b[0m" }

// isColored reports whether w is a terminal with colors. NO_COLOR turns them off, see no-color.org.
func isColored(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(int(f.Fd()))
}

var isTerminal = term.IsTerminal // tests replace it

// Verdicts returns a writer to w that colors the verdict at the beginning of each line: ok, FAIL or --.
func (c *Call) Verdicts(w io.Writer) io.Writer {
	if c.plain || !isColored(c.stdout.w) || w == io.Discard {
		return w
	}
	return verdicts{w}
}

type verdicts struct{ w io.Writer }

// Write writes whole lines.
func (v verdicts) Write(text []byte) (int, error) {
	for _, verdict := range []struct{ word, color string }{{"ok", green}, {"FAIL", red}, {"--", yellow}} {
		if rest, found := bytes.CutPrefix(text, []byte(verdict.word+" ")); found {
			_, err := fmt.Fprintf(v.w, "%s %s", paint(verdict.color, verdict.word), rest)
			return len(text), err
		}
	}
	return v.w.Write(text)
}

// checkedOutput keeps the first error of writes, which many commands do not check.
type checkedOutput struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

// Write writes to the output.
func (o *checkedOutput) Write(data []byte) (int, error) {
	n, err := o.w.Write(data)
	if err != nil {
		err = fmt.Errorf("the standard output: %w", err)
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// failed returns the first error.
func (o *checkedOutput) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
