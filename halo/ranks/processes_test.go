//go:build unix

package ranks_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p/mpi"
)

// together are the processes that execute a test together; nil for a single process.
var together *mpi.Processes

// processes returns the number of processes.
func processes() int {
	if together.IsAlone() {
		return 1
	}
	return together.Size()
}

// testsVariable names the tests that a process executes.
const testsVariable = "HALOX_TEST_RANKS"

func TestMain(m *testing.M) {
	tests := func(p *mpi.Processes) error {
		together = p
		testdevices.Share(p.Rank, p.Size())
		if err := errors.Join(flag.Set("test.run", os.Getenv(testsVariable)), flag.Set("test.v", "true")); err != nil {
			return err
		}
		if code := m.Run(); code != 0 {
			return fmt.Errorf("tests ended with code %d", code)
		}
		return nil
	}
	testmpi.Main(m, map[string]func() error{
		"tests":                  testmpi.AsOne(mpi.Options{Limit: 20 * time.Minute}, tests),
		"tests of short waiting": testmpi.AsOne(mpi.Options{Limit: testmpi.Limit()}, tests),
	})
}

// isHeavy reports whether a case has too many blocks for make test: with several processes whose kernels
// share the CPU cores.
func isHeavy(s *testdevices.Set, each int) bool {
	return !together.IsAlone() && each > 4 && testdevices.OnCPU(s.Devices[0]) && !testdevices.Long()
}

// The tests of ranks hold over several processes, each with its own devices.
func TestProcesses(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	calls := "^(TestCalls|TestReduction|TestNewWindow|TestValues|TestMatching)$"
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		type job struct {
			name, tests string
			ranks       int
		}
		all := testdevices.Some(2, []job{
			{"calls", calls, 2},
			{"messages", "^TestPuts$/links=proxy//by_warps", 2},
			{"channels", "^TestChannels$/backend=host", 4},
			{"collectives", "^TestCollectives$/devices=1/backend=", 3},
			{"runs", "^(TestFail|TestBarrierCoversThirds|TestSameBits)$/backend=", 2},
		})
		if testdevices.Long() {
			all = append(all, job{"calls", calls + "/backend=", 4}, job{"messages", "^(TestPuts|TestChannels)$/backend=", 4},
				job{"runs", "^(TestFail|TestBarrierCoversThirds|TestSameBits)$", 4})
		}
		for _, tc := range all {
			t.Run(fmt.Sprintf("%s/%d", tc.name, tc.ranks), func(t *testing.T) {
				// Without a seed no test is skipped there.
				env := []string{testsVariable + "=" + tc.tests, "HALOX_TEST_SEED=0"}
				r := in.Done(t, testmpi.Job{Program: "tests", Ranks: tc.ranks, Env: env})
				if strings.Contains(r.Out, "no tests to run") {
					t.Error(r.Out)
				}
			})
		}
	})
}
