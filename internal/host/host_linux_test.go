package host

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/halox/halox/internal/test"
)

// machine writes the files of a machine of 1000 KiB, of which 600 are available, with a process that
// holds 20, and those of its cgroups.
func machine(t *testing.T, files map[string]string) *Host {
	t.Helper()
	root := t.TempDir()
	all := map[string]string{
		"proc/meminfo":     "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\n",
		"proc/7/status":    "Name:\thalox\nVmRSS:\t      30 kB\nRssAnon:\t      20 kB\n",
		"proc/7/mountinfo": "",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		file := filepath.Join(root, name)
		test.Check(t, os.MkdirAll(filepath.Dir(file), 0o755))
		test.Check(t, os.WriteFile(file, []byte(text), 0o644))
	}
	test.Check(t, os.Symlink("7", filepath.Join(root, "proc/self")))
	h := test.Must(openAt(root))(t)
	return h
}

const (
	mount1   = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	mount2   = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	mounted2 = "41 31 0:38 /pods/a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	outside2 = "41 31 0:38 /pods/b /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	kib      = 1 << 10
)

// limits is the file of a process's limits, in bytes.
func limits(space, data string) string {
	line := func(name, limit string) string {
		return fmt.Sprintf("%-25s %-20s %-20s bytes     \n", name, limit, "unlimited")
	}
	return "Limit                     Soft Limit           Hard Limit           Units     \n" + line("Max data size", data) + line("Max address space", space)
}

func TestWhatIsAvailable(t *testing.T) {
	for _, tc := range []struct {
		name        string
		files       map[string]string
		free, total int64 // KiB
		source      string
	}{
		{"a kernel without cgroups", nil, 600, 1000, "MemAvailable of /proc/meminfo"},
		{"version 2, without a limit", map[string]string{
			"proc/7/cgroup": "0::/a/b\n", "proc/7/mountinfo": mount2,
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.high": "max\n", "sys/fs/cgroup/a/b/memory.current": "4096\n",
		}, 600, 1000, "MemAvailable of /proc/meminfo"},
		{"version 2, the process's own limit", map[string]string{
			"proc/7/cgroup": "0::/a/b\n", "proc/7/mountinfo": mount2,
			"sys/fs/cgroup/a/b/memory.max": "409600\n", "sys/fs/cgroup/a/b/memory.current": "102400\n",
		}, 300, 400, "memory.max of cgroup /a/b"},
		{"version 2, a cgroup around has less", map[string]string{
			"proc/7/cgroup": "0::/a/b\n", "proc/7/mountinfo": mount2,
			"sys/fs/cgroup/a/b/memory.max": "409600\n", "sys/fs/cgroup/a/b/memory.current": "102400\n",
			"sys/fs/cgroup/a/memory.max": "512000\n", "sys/fs/cgroup/a/memory.current": "460800\n",
		}, 50, 400, "memory.max of cgroup /a"},
		{"version 2, throttled before it is full", map[string]string{
			"proc/7/cgroup": "0::/a\n", "proc/7/mountinfo": mount2,
			"sys/fs/cgroup/a/memory.max": "409600\n", "sys/fs/cgroup/a/memory.high": "204800\n", "sys/fs/cgroup/a/memory.current": "102400\n",
		}, 100, 200, "memory.high of cgroup /a"},
		{"version 2, what belongs to files can be had", map[string]string{
			"proc/7/cgroup": "0::/a\n", "proc/7/mountinfo": mount2,
			"sys/fs/cgroup/a/memory.max": "409600\n", "sys/fs/cgroup/a/memory.current": "409600\n",
			"sys/fs/cgroup/a/memory.stat": "anon 204800\nfile 204800\ninactive_file 102400\nactive_file 51200\n",
		}, 150, 400, "memory.max of cgroup /a"},
		{"version 2, more in use than the limit", map[string]string{
			"proc/7/cgroup": "0::/a\n", "proc/7/mountinfo": mount2,
			"sys/fs/cgroup/a/memory.max": "409600\n", "sys/fs/cgroup/a/memory.current": "500000\n",
		}, 0, 400, "memory.max of cgroup /a"},
		{"version 2, a container that sees its own cgroup as the root", map[string]string{
			"proc/7/cgroup": "0::/pods/a/b\n", "proc/7/mountinfo": mounted2,
			"sys/fs/cgroup/b/memory.max": "409600\n", "sys/fs/cgroup/b/memory.current": "0\n",
			"sys/fs/cgroup/memory.max": "102400\n", "sys/fs/cgroup/memory.current": "0\n",
		}, 100, 100, "memory.max of cgroup /pods/a"},
		{"version 2, a process outside of what is mounted", map[string]string{
			"proc/7/cgroup": "0::/pods/a\n", "proc/7/mountinfo": outside2,
			"sys/fs/cgroup/memory.max": "102400\n", "sys/fs/cgroup/memory.current": "0\n",
		}, 100, 100, "memory.max of cgroup /pods/b"},
		{"version 1", map[string]string{
			"proc/7/cgroup": "4:memory:/a/b\n3:cpu:/c\n0::/\n", "proc/7/mountinfo": mount1,
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "409600\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "512000\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "409600\n",
			"sys/fs/cgroup/memory/a/memory.stat":         "inactive_file 1\ntotal_inactive_file 51200\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "600000\n",
		}, 150, 500, "memory.limit_in_bytes of cgroup /a"},
		{"both versions", map[string]string{
			"proc/7/cgroup": "4:memory:/a\n0::/b\n", "proc/7/mountinfo": mount1 + "38 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "512000\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "0\n",
			"sys/fs/cgroup/unified/b/memory.max": "409600\n", "sys/fs/cgroup/unified/b/memory.current": "0\n",
		}, 400, 400, "memory.max of cgroup /b"},
		{"a limit of the address space", map[string]string{
			"proc/7/limits": limits("409600", "unlimited"), "proc/7/status": "VmSize:\t100 kB\nVmData:\t50 kB\nRssAnon:\t20 kB\n",
		}, 300, 400, "address space by RLIMIT_AS"},
		{"a limit of data", map[string]string{
			"proc/7/limits": limits("unlimited", "102400"), "proc/7/status": "VmSize:\t300 kB\nVmData:\t150 kB\nRssAnon:\t20 kB\n",
		}, 0, 100, "data by RLIMIT_DATA"},
		{"no limit of the process", map[string]string{"proc/7/limits": limits("unlimited", "unlimited")}, 600, 1000, "MemAvailable of /proc/meminfo"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := machine(t, tc.files).Now()
			want := Memory{Free: tc.free * kib, Total: tc.total * kib, Resident: 20 * kib, Source: tc.source}
			if err != nil || m != want {
				t.Errorf("got %+v, %v; want %+v", m, err, want)
			}
		})
	}
}

func TestQuota(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		cores int
	}{
		{"no quota", map[string]string{"sys/fs/cgroup/a/cpu.max": "max 100000\n"}, math.MaxInt},
		{"two cores and a half", map[string]string{"sys/fs/cgroup/a/cpu.max": "250000 100000\n"}, 2},
		{"less than a core", map[string]string{"sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, 0},
		{"a cgroup around has less", map[string]string{
			"sys/fs/cgroup/a/cpu.max": "400000 100000\n", "sys/fs/cgroup/cpu.max": "30000 10000\n",
		}, 3},
		{"version 1", map[string]string{
			"proc/7/cgroup": "4:memory:/a\n3:cpu:/c\n0::/\n", "proc/7/mountinfo": mount1,
			"sys/fs/cgroup/cpu/c/cpu.cfs_quota_us": "400000\n", "sys/fs/cgroup/cpu/c/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
		}, 4},
	} {
		files := map[string]string{"proc/7/cgroup": "0::/a\n", "proc/7/mountinfo": mount2}
		maps.Copy(files, tc.files)
		if got := machine(t, files).quota(); got != tc.cores {
			t.Errorf("%s: %d cores, want %d", tc.name, got, tc.cores)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1000))
	if n := Threads(); n < 1 || n > runtime.NumCPU() {
		t.Errorf("%d threads on %d cores", n, runtime.NumCPU())
	}
}

// A limit that is set while the program runs counts.
func TestLimitsAreReadAnew(t *testing.T) {
	h := machine(t, map[string]string{"proc/7/cgroup": "0::/a\n", "proc/7/mountinfo": mount2,
		"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "0\n"})
	test.Check(t, os.WriteFile(filepath.Join(h.memory[0].dir, "memory.max"), []byte("1024\n"), 0o644))
	if m, err := h.Now(); err != nil || m.Free != kib {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestThisMachine(t *testing.T) {
	h := test.Must(Open())(t)
	m, err := h.Now()
	if err != nil || m.Free <= 0 || m.Free > m.Total || m.Resident <= 0 || m.Source == "" {
		t.Errorf("got %+v, %v", m, err)
	}
}

func BenchmarkNow(b *testing.B) {
	h := test.Must(Open())(b)
	for b.Loop() {
		test.Must(h.Now())(b)
	}
}
