package option

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "1024": 1024, "1KiB": 1024, "1K": 1024, "1k": 1024, "0.5KiB": 512, " 3 MiB ": 3 << 20, "2GB": 2e9, "256MiB": 256 << 20, "1e3": 1000, "7B": 7} {
		if n, err := parseSize(text); n != want || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}

// sample is options of every kind.
type sample struct {
	ids, points    []int
	sizes          []int64
	paths, engines []string
	mode, over     string
	budget         time.Duration
	least          int64
}

// settled parses a command line and returns the options.
func settled(args ...string) (sample, error) {
	o := sample{points: []int{64}, sizes: []int64{8, 4096}, paths: []string{"peer"}, engines: []string{"all"}, mode: "both", over: "bytes", budget: time.Second}
	all := []Flag{
		{Name: "ids", Value: &o.ids, Repeated: true},
		{Name: "points", Value: &o.points, From: 1, To: 100},
		{Name: "sizes", Value: &o.sizes},
		{Name: "paths", Value: &o.paths, Help: "paths: {}", Choices: []string{"peer", "direct"}},
		{Name: "engines", Value: &o.engines, Choices: []string{"all", "one"}, Open: true},
		{Name: "mode", Value: &o.mode, Choices: []string{"both", "one"}},
		{Name: "over", Value: &o.over, Open: true},
		{Name: "budget", Value: &o.budget},
		{Name: "least", Value: &o.least},
	}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	Add(f, all)
	if usage := f.Lookup("paths").Usage; usage != "paths: peer, direct" {
		return o, fmt.Errorf("help %q", usage)
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	return o, Settle(f, all)
}

func TestSettle(t *testing.T) {
	o, err := settled("--ids", "0,0", "--points", "4,4,8", "--paths", "direct,direct", "--least", "0.5KiB")
	want := sample{ids: []int{0, 0}, points: []int{4, 8}, sizes: []int64{8, 4096}, paths: []string{"direct"}, mode: "both", budget: time.Second, least: 512}
	if err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v, %v", o, err)
	}
	for args, want := range map[string]string{
		"--points 0":                    "--points: must be between 1 and 100, got 0",
		"--points 101":                  "--points: must be between 1 and 100, got 101",
		"--sizes 1K,many":               `64KiB, got "many"`,
		"--sizes 0":                     `--sizes: must be a whole number of bytes above 0`,
		"--sizes -1KiB":                 `64KiB, got "-1KiB"`,
		"--sizes 0.3":                   `64KiB, got "0.3"`,
		"--sizes NaN":                   `64KiB, got "NaN"`,
		"--sizes 1e300GiB":              `64KiB, got "1e300GiB"`,
		"--paths tunnel":                `--paths: must be one of peer, direct, got "tunnel"`,
		"--paths=":                      "--paths: must not be empty; choose from peer, direct",
		"--engines=":                    "--engines: must not be empty; choose from all, one",
		"--mode two":                    `--mode: must be one of both, one, got "two"`,
		"--budget 0s":                   "--budget: must be above 0, such as 20ms, got 0s",
		"--least -1":                    `64KiB, got "-1"`,
		"--ids -1 --over= --budget -1s": "--budget: must be above 0, such as 20ms, got -1s",
	} {
		if o, err := settled(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", args, o, err)
		}
	}
}
