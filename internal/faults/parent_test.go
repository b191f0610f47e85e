//go:build unix

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/streams"
)

// parentVariable makes the test program a parent.
const parentVariable = "HALOX_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(reportVariable) != "" || os.Getenv(parentVariable) != "" {
		os.Exit(int(command.Execute(context.Background(), program(3), os.Args[1:], os.Stdout, os.Stderr)))
	}
	test.CatchSignals()
	os.Exit(m.Run())
}

// program returns a command with an argument for each of its children in turn: what it does, and at which step.
func program(restarts int) *cobra.Command {
	root := command.NewGroup("test", "Test", &cobra.Command{Use: "run", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := Join(cmd.Context())
			if c != nil {
				checked, failed := c.Check(cmd.Context())
				switch {
				case !checked:
					failed = c.do(cmd.Context(), args[min(len(c.Faults), len(args)-1)])
				case args[0] == "hangs 40":
					select {}
				case (args[0] == "breaks 40" || slices.Contains(args, "starts not")) && c.Devices[0].Name == "host 1":
					failed = errors.New("wrong sum")
				}
				err = failed
				c.Ended(err)
				return err
			}
			if err != nil {
				return err
			}
			o := Options{Restarts: restarts, Config: []byte("{}"), Checkpoint: func() (int64, bool) { return 30, true }}
			if args[0] == "hangs 40" {
				o.CheckLimit = time.Second
			}
			return Run(cmd.Context(), o)
		}})
	command.Setup(root)
	return root
}

// do does what an argument says: a word, and a step or a file.
func (c *Child) do(ctx context.Context, script string) error {
	what, at, _ := strings.Cut(script, " ")
	if what == "starts" {
		return streams.ErrNotStarted
	}
	c.say(func(r *report) {
		for n := range 3 {
			if d := fmt.Sprint("host ", n); !strings.Contains(strings.Join(c.Without, ","), d) {
				r.Devices = append(r.Devices, device{Name: d})
			}
		}
	})
	if step, err := strconv.ParseInt(at, 10, 64); err == nil {
		c.At(step)
	}
	switch what {
	case "breaks", "hangs": // all are lost
		c.say(func(r *report) { r.Lost = r.Devices })
		fallthrough
	case "loses":
		return &streams.Error{Device: "host 1", Doing: "launch", Fatal: true, Err: errors.New("gone")}
	case "diverges":
		return command.As(command.Diverged, errors.New("not finite"))
	case "fails":
		return errors.New("wrong")
	case "crashes":
		go panic("crash")
		select {}
	case "kills":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "waits":
		interrupt.During(ctx, "waiting", nil)
		interrupt.Limit(ctx, interrupt.None)
		stop := interrupt.OnRequest(func() { _ = os.WriteFile(at+".requested", nil, 0o600) })
		defer stop()
		_ = os.WriteFile(at, nil, 0o600)
		<-ctx.Done()
		if c.Faults == nil {
			_ = os.WriteFile(at+".told", nil, 0o600)
		}
		return ctx.Err()
	}
	return command.Of(ctx).PrintJSON(c.Plan)
}

// A command is started again after faults, and nothing else; its output is that of the last child.
func TestRun(t *testing.T) {
	for _, tc := range []struct {
		script   string
		restarts int
		code     command.Code
		says     string
		faults   int
	}{
		{"is well", 1, command.OK, "", 0},
		{"loses 40,is well", 1, command.OK, "halox: warning: a device was lost at step 40: restart 1 of 1 from step 30 without host 1\n", 1},
		{"breaks 40,is well", 1, command.OK, "halox: warning: host 1 fails its check: wrong sum\nhalox: warning: a device was lost at step 40: " +
			"restart 1 of 1 from step 30 without host 1\n", 1},
		{"hangs 40,is well", 1, command.OK, "host 2 fails its check: it does not end within 1s\nhalox: warning: a device was lost at step 40: " +
			"restart 1 of 1 from step 30\n", 1},
		{"kills 40,crashes 50,is well", 2, command.OK, "(exit status 2) at step 50: restart 2 of 2 from step 30\n", 2},
		{"kills,kills", 3, command.Failed, "(signal: killed) at step 30: the run is not started again: it got no further than step 30", 2},
		{"loses 40,loses 40", 3, command.DeviceLost, "at step 40: the run is not started again: it got no further than step 40 on other devices", 0},
		{"diverges 50,diverges 60", 3, command.Diverged, "diverged at step 60: the run is not started again", 0},
		{"diverges 50,is well", 3, command.OK, "restart 1 of 3", 1},
		{"kills 40,starts not,is well", 1, command.OK, "host 1 fails its check: wrong sum\nhalox: warning: a device cannot be opened: restart from step 30 " +
			"without host 1\n", 2},
		{"starts not", 3, command.Failed, "the CUDA driver does not start\n", 0},
		{"fails", 3, command.Failed, "wrong", 0},
		{"kills,fails", 3, command.Failed, "wrong", 0},
	} {
		t.Run(tc.script, func(t *testing.T) {
			var out, notes bytes.Buffer
			args := append([]string{"run", "--json"}, strings.Split(tc.script, ",")...)
			code := command.Execute(t.Context(), program(tc.restarts), args, &out, &notes)
			if code != tc.code || !strings.Contains(notes.String(), tc.says) {
				t.Fatalf("exit code %d:\n%s", code, &notes)
			}
			if code != command.OK {
				return
			}
			var p Plan
			test.Check(t, json.Unmarshal(out.Bytes(), &p))
			if len(p.Faults) != tc.faults || p.Restart != (tc.faults > 0) || string(p.Config) != "{}" {
				t.Errorf("the last child was told %+v", p)
			}
			if strings.HasPrefix(tc.script, "loses") || strings.HasPrefix(tc.script, "breaks") {
				f, found := p.Faults[0], map[string]string{"host 0": "ok", "host 1": "ok", "host 2": "ok"}
				if strings.HasPrefix(tc.script, "breaks") {
					found["host 1"] = "wrong sum"
				}
				if !reflect.DeepEqual(f.Checks, found) || f.Step != 40 || f.Code != 6 || !reflect.DeepEqual(f.Devices, []string{"host 0", "host 1", "host 2"}) ||
					!reflect.DeepEqual(f.Left, []string{"host 0", "host 2"}) || f.Message != "device host 1: launch: gone" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// await waits until a file is there.
func await(t *testing.T, file string) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Since(begin) > 5*time.Minute {
			t.Fatal("there is no ", file)
		}
	}
}

// A child gets the signals of its parent, once, and ends when the parent is killed; after a signal there is no restart.
func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGKILL} {
		t.Run(s.String(), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "waits")
			var out test.Output
			p := exec.Command(os.Args[0], "run", "kills", "waits "+file)
			if s != syscall.SIGUSR1 {
				p.Args = []string{os.Args[0], "run", "waits " + file}
			}
			p.Env = append(os.Environ(), parentVariable+"=1")
			p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			p.Stdout, p.Stderr = &out, &out
			test.Check(t, p.Start())
			t.Cleanup(func() { syscall.Kill(-p.Process.Pid, syscall.SIGKILL) })
			await(t, file)
			switch s {
			case syscall.SIGUSR1:
				test.Check(t, p.Process.Signal(s))
				await(t, file+".requested")
				test.Check(t, p.Process.Signal(syscall.SIGTERM))
			case syscall.SIGKILL:
				test.Check(t, p.Process.Kill())
				await(t, file+".told")
			default: // to parent and child, as a terminal does
				test.Check(t, syscall.Kill(-p.Process.Pid, s))
			}
			_ = p.Wait()
			if code := p.ProcessState.ExitCode(); code != int(command.Interrupted) && s != syscall.SIGKILL {
				t.Errorf("exit code %d:\n%s", code, out.String())
			}
			if strings.Contains(out.String(), "by force") {
				t.Errorf("the child was told twice:\n%s", out.String())
			}
		})
	}
}

// GPUs that a driver does not list are looked for by their numbers, as CUDA_VISIBLE_DEVICES of the user has them.
func TestCandidates(t *testing.T) {
	for _, tc := range []struct {
		visible string
		ids     []int
		want    string
	}{
		{"", []int{1, 3}, "cuda 1 as 1, cuda 3 as 3"},
		{"GPU-a,GPU-b,7", nil, "cuda 0 as GPU-a, cuda 1 as GPU-b, cuda 2 as 7"},
		{"4,5", []int{1, 2}, "cuda 1 as 5"},
	} {
		t.Setenv("CUDA_VISIBLE_DEVICES", tc.visible)
		var got []string
		for _, d := range (Options{IDs: tc.ids}).candidates() {
			got = append(got, d.Name+" as "+d.UUID)
		}
		if all := strings.Join(got, ", "); all != tc.want {
			t.Errorf("%q, %v: %s", tc.visible, tc.ids, all)
		}
	}
	if n := len(Options{}.candidates()); n != 2 {
		t.Errorf("%d of 2", n)
	}
}
