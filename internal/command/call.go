package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/halox/halox/internal/interrupt"
)

// Call is a running command line.
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
	log    *slog.Logger
}

type callKey struct{}

// Of returns the call of a command's context, an empty one outside of calls.
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
	if err != nil && !errors.Is(err, errPrinted) && err.Error() != interrupt.ErrInterrupted.Error() {
		c.PrintError("", err)
	}
	return CodeOf(err)
}

// AddLog adds the flag --log to a command.
func AddLog(flags *pflag.FlagSet) {
	flags.String("log", "text", "format of the standard error: text, or json for one JSON object per line")
}

// Log returns the logger of --log json, nil without it. Its messages are begin, progress, output, end, note, warning
// and error.
func (c *Call) Log() *slog.Logger { return c.log }

// begin applies the flags of all commands. RunE follows.
func (c *Call) begin(cmd *cobra.Command) error {
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
	switch format, _ := cmd.Flags().GetString("log"); format {
	case "", "text":
	case "json":
		c.log = slog.New(slog.NewJSONHandler(c.stderr, &slog.HandlerOptions{Level: level(c.quiet)}))
		cmd.Root().SetErr(noteWriter{c.log})
		interrupt.Notes(cmd.Context(), noteWriter{c.log})
	default:
		return As(Usage, fmt.Errorf("--log: must be text or json, got %q", format))
	}
	return nil
}

// level returns the level of messages that are written.
func level(quiet bool) slog.Level {
	if quiet {
		return slog.LevelError
	}
	return slog.LevelInfo
}

// noteWriter logs each line that is written.
type noteWriter struct{ log *slog.Logger }

// Write writes whole lines.
func (w noteWriter) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			w.log.Info("note", "text", line)
		}
	}
	return len(text), nil
}

// Streams returns the standard output and error, also with -q or --json, and whether --json is set.
func (c *Call) Streams() (stdout, stderr io.Writer, isJSON bool) { return c.stdout.w, c.stderr, c.json }

// NoColors turns colors off: Open MPI gives processes a terminal that is not the user's.
func (c *Call) NoColors() { c.plain = true }

// PrintError prints an error, even with -q. who names the process; "" for a single process.
func (c *Call) PrintError(who string, err error) {
	text := err.Error()
	if c.log != nil {
		c.log.Error("error", "text", who+text, "exit_code", int(CodeOf(err)))
		return
	}
	if !c.plain && isColored(c.stderr) {
		text = paint(red, text)
	}
	fmt.Fprintln(c.stderr, who+text)
}

// Warn prints a warning, except with -q.
func (c *Call) Warn(warning any) {
	switch {
	case c.log != nil:
		c.log.Warn("warning", "text", fmt.Sprint(warning))
	case !c.quiet:
		fmt.Fprintln(c.stderr, "halox: warning:", warning)
	}
}

// Stdin returns all of the standard input.
func (c *Call) Stdin() ([]byte, error) { return c.stdin() }

// PrintJSON prints the result of a command if --json is set. A value with a method Encode is printed by that method.
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
