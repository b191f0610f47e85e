//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/internal/testnet"
	"github.com/halox/halox/results"
)

// pageCommand is a command line of a page.
type pageCommand struct {
	text     string
	launcher string   // "mpirun -n 2 --host node0,node1", "srun --mpi=pmix", or nothing
	args     []string // of halox
}

// commandsOf returns the commands in the blocks of a page, in their order, and whole ones within its lines.
func commandsOf(page string) (all []pageCommand) {
	var lines []string
	blocks := regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$")
	for _, block := range blocks.FindAllStringSubmatch(page, -1) {
		lines = append(lines, strings.Split(block[1], "\n")...)
	}
	for _, inline := range regexp.MustCompile("`(mpirun [^`]*)`").FindAllStringSubmatch(blocks.ReplaceAllString(page, ""), -1) {
		lines = append(lines, inline[1])
	}
	for _, line := range lines {
		if m := regexp.MustCompile(`^((?:mpirun|srun) .*?|)(?:^| )halox (.*)$`).FindStringSubmatch(line); m != nil {
			all = append(all, pageCommand{line, m[1], strings.Fields(m[2])})
		}
	}
	return all
}

// smaller makes a command of the page one for a test: with less to measure.
func (c pageCommand) smaller() []string {
	args := slices.Clone(c.args)
	for i, a := range args {
		args[i] = strings.NewReplacer("64,128,256,512", "8,10,12,16,20", "64,128,256", "8,10,12,16,20", "8,64KiB,1MiB", "8,64KiB").Replace(a)
	}
	if args[0] == "bench" {
		args = append(args, "--budget", "5ms", "--backend", "host")
	}
	if slices.Contains(args, "schemes") {
		args = append(args, "--precisions", "float64")
	}
	return args
}

// commandsOfManyHosts returns the commands of the pages about many hosts.
func commandsOfManyHosts(t *testing.T) []pageCommand {
	return commandsOf(page(t, "docs/how-to/run-on-a-cluster.md") + page(t, "docs/how-to/predict-scaling.md") + page(t, "docs/results/forecast.md"))
}

// inFolderOfThePage changes to a folder that has what the commands of the page read.
func inFolderOfThePage(t *testing.T) (module string) {
	t.Helper()
	module, err := filepath.Abs(filepath.Join("..", ".."))
	test.Check(t, err)
	t.Chdir(t.TempDir())
	for _, folder := range []string{"configs", "docs/images", "results/forecast", "results/h200x4"} {
		test.Check(t, os.MkdirAll(folder, 0o755))
	}
	err = errors.Join(
		os.Symlink(filepath.Join(module, "results/h200x4/performance"), "results/h200x4/performance"),
		os.Symlink(filepath.Join(module, "configs/heat3d.yaml"), "configs/heat3d.yaml"),
		os.WriteFile("heat3d.yaml", []byte(wired), 0o600),
	)
	test.Check(t, err)
	return module
}

// Commands of the page that need no other host are carried out. The curves are those that it shows.
func TestManyHostsOnOneHost(t *testing.T) {
	if !testdevices.Long() {
		t.Skip("SKIPPED: forecasts take half a minute; make test-long makes them")
	}
	all := commandsOfManyHosts(t)
	module := inFolderOfThePage(t)
	anyDevices := strings.Replace(wired, ", count: 1", "", 1) // of which the commands say how many a host has
	test.Check(t, os.WriteFile("heat3d.yaml", []byte(anyDevices), 0o600))
	ran := 0
	for _, c := range all {
		if c.launcher != "" || strings.Contains(c.text, "two.json") {
			continue
		}
		ran++
		if code, out, errs := cli(c.smaller()...); code != 0 {
			t.Errorf("%s: exit %d: %s%s", c.text, code, out, errs)
		}
	}
	if ran < 3 {
		t.Fatalf("%d commands were carried out", ran)
	}
	falls := func(file string) map[string]float64 {
		found := map[string]float64{}
		r := test.Must(results.Read(file))(t)
		for _, row := range r.Rows {
			if at, ok := row.Get(results.HostsAt90); ok {
				found[row.Text("network")+" "+row.Text("mode")] = at.Median
			}
		}
		return found
	}
	got, want := falls("results/forecast/h200x4.json"), falls(filepath.Join(module, "results/forecast/h200x4.json"))
	for curve, at := range want {
		if off := got[curve] / at; off < 0.9 || off > 1.1 { // other processors round otherwise
			t.Errorf("%s: the efficiency falls below 90%% at %v hosts, and the page's record has %v", curve, got[curve], at)
		}
	}
	if len(want) != 5 {
		t.Errorf("the page's record has %v", want)
	}
	for _, picture := range []string{"docs/images/many-hosts.png", "hosts.svg"} {
		if info, err := os.Stat(picture); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", picture, err)
		}
	}
}

// Processes of one machine run the config as the page says.
func TestLaunchedManyHosts(t *testing.T) {
	all := commandsOfManyHosts(t)
	i := slices.IndexFunc(all, func(c pageCommand) bool { return c.launcher == "mpirun -n 2" })
	if i < 0 {
		t.Fatal("the page starts no processes on one machine")
	}
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		inFolderOfThePage(t)
		r := launchHalox(t, in, 2, nil, all[i].smaller()...)
		r.Succeeds(t)
		if !strings.Contains(r.Out, "over mpi") || !strings.Contains(r.Out, "2 x host") {
			t.Errorf("it ran otherwise:\n%s", r.Out)
		}
	})
}

// The commands for two hosts are carried out over two, in the order of the page, and those for one with what they wrote.
func TestNetnsManyHosts(t *testing.T) {
	all := commandsOfManyHosts(t)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		n := testnet.New(t, 2)
		for _, h := range n.Hosts {
			h.Slow(t, 400e6)
		}
		inFolderOfThePage(t)
		ran := 0
		for _, c := range all {
			switch {
			case c.launcher == "mpirun -n 2 --host node0,node1":
				r := in.Run(t, n.Over(in, testmpi.Job{
					Program: "halox", Ranks: 2, Env: []string{argumentsVariable + "=" + strings.Join(c.smaller(), "\n")},
				}))
				r.Succeeds(t)
			case strings.Contains(c.text, "two.json"):
				code, out, errs := cli(c.smaller()...)
				if code != 0 || !strings.Contains(out, " mpi ") || !strings.Contains(out, "64 ") {
					t.Errorf("%s: exit %d: %s%s", c.text, code, out, errs)
				}
			default:
				continue
			}
			ran++
		}
		if ran != 8 {
			t.Errorf("%d commands were carried out", ran)
		}
	})
}

// scriptOf returns the first block of a language on a page.
func scriptOf(t *testing.T, name, language string) string {
	t.Helper()
	_, script, found := strings.Cut(page(t, name), "```"+language+"\n#!")
	script, _, _ = strings.Cut(script, "```")
	if !found {
		t.Fatalf("%s has no script for %s", name, language)
	}
	return "#!" + script
}

// The batch scripts of the pages can be read by bash, and by sbatch where that is.
func TestBatchScripts(t *testing.T) {
	for _, name := range []string{"docs/how-to/run-on-a-cluster.md", "docs/how-to/run-for-days.md"} {
		script := scriptOf(t, name, "bash")
		file := write(t, "job.sh", script)
		if out, err := exec.Command("bash", "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: bash: %v: %s", name, err, out)
		}
		for line := range strings.Lines(script) {
			if strings.HasPrefix(line, "#SBATCH") && !regexp.MustCompile(`^#SBATCH --[a-z-]+=[\w:]+\n$`).MatchString(line) {
				t.Errorf("%s: an option for sbatch: %q", name, line)
			}
		}
		if exec.Command("sinfo").Run() != nil {
			continue // no Slurm works here, to read the script
		}
		if out, err := exec.Command("sbatch", "--test-only", file).CombinedOutput(); err != nil {
			t.Errorf("%s: sbatch --test-only: %v: %s", name, err, out)
		}
	}
}

// The job of the page submits itself again after its wall time, and only then.
func TestJobThatSubmitsItself(t *testing.T) {
	script := strings.Replace(scriptOf(t, "docs/how-to/run-for-days.md", "bash"), "23h30m", "$LIMIT", 1)
	for _, c := range []struct {
		limit, iterations string
		stopped           string // in the record; "" if there is none
		again             bool
	}{{"50ms", "1000000000", "wall time", true}, {"1h", "50", "iterations", false}, {"1h", "none", "", false}} {
		t.Chdir(t.TempDir())
		test.Check(t, os.WriteFile("heat3d.yaml", []byte(small), 0o600))
		test.Check(t, os.WriteFile("heat3d.json", []byte(`"stopped": "wall time"`), 0o600)) // of an earlier job
		fakes := "srun() { shift 2; \"$HALOX\" \"$@\" --set exact=null --set stop.iterations=$STEPS; }\nsbatch() { touch again; }\n"
		cmd := exec.Command("bash", "-c", fakes+script)
		cmd.Env = append(os.Environ(), mainVariable+"=1", "HALOX="+test.Must(os.Executable())(t), "LIMIT="+c.limit, "STEPS="+c.iterations)
		out, _ := cmd.CombinedOutput()
		record, _ := os.ReadFile("heat3d.json")
		_, err := os.Stat("again")
		if again := err == nil; again != c.again || !strings.Contains(string(record), c.stopped) || (len(record) > 0) != (c.stopped != "") {
			t.Errorf("%+v: again %t, record\n%s\n%s", c, again, record, out)
		}
	}
}

// The loop of the page starts jobs again that have lost a device or a process.
func TestLoopOfJobs(t *testing.T) {
	script := scriptOf(t, "docs/how-to/run-for-days.md", "sh")
	for code, jobs := range map[int]int{0: 1, 1: 1, 3: 1, 4: 1, 6: 4, 7: 1, 130: 1, 134: 4, 137: 4, 139: 4, 143: 1} {
		out, err := exec.Command("sh", "-c", fmt.Sprintf("mpirun() { echo job; return %d; }\n", code)+script).CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() != code || strings.Count(string(out), "job") != jobs {
			t.Errorf("after code %d: %v:\n%s", code, err, out)
		}
	}
}

// A process that srun has started as one of several, and that is alone for its MPI library, refuses to run the whole problem.
func TestLaunchedBySrunAlone(t *testing.T) {
	config := write(t, "c.yaml", small)
	self := test.Must(os.Executable())(t)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		c := exec.CommandContext(ctx, self)
		for _, v := range os.Environ() {
			if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "OMPI_") && !strings.HasPrefix(name, "PMI") && !strings.HasPrefix(name, "SLURM_") {
				c.Env = append(c.Env, v)
			}
		}
		c.Env = append(append(c.Env, in.Alone()...), "HALOX_TEST_PROGRAM=halox", "HALOX_MPI="+in.Library, argumentsVariable+"=run\n"+config,
			"SLURM_STEP_NUM_TASKS=4", "SLURM_NTASKS=4", "SLURM_PROCID=2", "SLURM_LOCALID=2")
		out, err := c.CombinedOutput()
		if err == nil {
			t.Errorf("it ran:\n%s", out)
		}
		for _, words := range []string{"srun started 4 processes, but ", " finds 1: they do not match", "srun --mpi=pmix"} {
			if !strings.Contains(string(out), words) {
				t.Errorf("it does not say %q:\n%s", words, out)
			}
		}
	})
}
