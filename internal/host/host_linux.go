package host

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// Host is where the numbers are read.
type Host struct {
	proc   procfs.FS
	self   procfs.Proc
	memory []group // cgroups that limit memory
	cpu    []group // cgroups that limit the time of cores
}

// Open finds the cgroups of this process, of versions 1 and 2, and those around them.
func Open() (*Host, error) { return openAt("/") }

// openAt is Open for files below a root.
func openAt(root string) (*Host, error) {
	fs, err := procfs.NewFS(filepath.Join(root, "proc"))
	if err != nil {
		return nil, err
	}
	h := &Host{proc: fs}
	if h.self, err = fs.Self(); err != nil {
		return nil, err
	}
	return h, h.findGroups(root)
}

// findGroups finds the cgroups, from the process's own up to where its hierarchy is mounted. A kernel without cgroups
// has none.
func (h *Host) findGroups(root string) error {
	own, err := h.self.Cgroups()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mounts, err := h.self.MountInfo()
	if err != nil {
		return err
	}
	for _, g := range own {
		for _, m := range mounts {
			var around []group
			for path := below(m.Root, g.Path); ; path = filepath.Dir(path) {
				around = append(around, group{
					version: versionOf(g), name: filepath.Join(m.Root, path),
					dir: filepath.Join(root, m.MountPoint, path),
				})
				if path == "/" {
					break
				}
			}
			if shows(m, g, "memory") {
				h.memory = append(h.memory, around...)
			}
			if shows(m, g, "cpu") {
				h.cpu = append(h.cpu, around...)
			}
		}
	}
	return nil
}

func versionOf(g procfs.Cgroup) *version {
	if len(g.Controllers) == 0 {
		return &version2
	}
	return &version1
}

// shows reports whether the cgroup is visible at a mount and has the controller, such as memory or cpu.
func shows(m *procfs.MountInfo, g procfs.Cgroup, controller string) bool {
	if versionOf(g) == &version2 {
		return m.FSType == "cgroup2"
	}
	_, mounted := m.SuperOptions[controller]
	return mounted && m.FSType == "cgroup" && slices.Contains(g.Controllers, controller)
}

// below returns a cgroup's path below what is mounted: all of it where something else is, as in a container
// whose mount shows its own cgroup as the root.
func below(mounted, path string) string {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(mounted, "/"))
	if !ok || rest != "" && rest[0] != '/' || strings.HasPrefix(rest, "/..") {
		return "/"
	}
	return filepath.Join("/", rest)
}

// Now reads the numbers.
func (h *Host) Now() (m Memory, err error) {
	info, err := h.proc.Meminfo()
	if err != nil {
		return m, err
	}
	if info.MemTotalBytes == nil || info.MemAvailableBytes == nil {
		return m, errors.New("/proc/meminfo has no MemTotal or no MemAvailable")
	}
	status, err := h.self.NewStatus()
	if err != nil {
		return m, err
	}
	m = Memory{Free: bytes(*info.MemAvailableBytes), Total: bytes(*info.MemTotalBytes), Resident: bytes(status.RssAnon),
		Source: "MemAvailable of /proc/meminfo"}
	for _, g := range h.memory {
		g.lower(&m)
	}
	limits, err := h.self.Limits()
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	m.lower(bytes(limits.AddressSpace), bytes(status.VmSize), "address space by RLIMIT_AS")
	m.lower(bytes(limits.DataSize), bytes(status.VmData), "data by RLIMIT_DATA")
	return m, err
}

// lower lowers what is free to what a limit of the process leaves.
func (m *Memory) lower(limit, used int64, source string) {
	if limit == math.MaxInt64 {
		return
	}
	m.Total = min(m.Total, limit)
	if free := max(0, limit-used); free < m.Free {
		m.Free, m.Source = free, source
	}
}

// quota returns how many whole cores the quotas leave, math.MaxInt without one.
func (h *Host) quota() int {
	cores := math.MaxInt
	for _, g := range h.cpu {
		if limit, period, ok := g.share(); ok {
			cores = min(cores, int(limit/period))
		}
	}
	return cores
}

// Cores returns how many cores the host has, also those that this process may not use. ok is false where that is not
// known.
func Cores() (n int, ok bool) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, false
	}
	all, err := fs.CPUInfo()
	return len(all), err == nil
}

func bytes(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// group is one cgroup.
type group struct {
	*version
	name string
	dir  string
}

// version is the files of a version of cgroups. Reclaimed are the fields of memory.stat that count what belongs to
// files: the kernel drops it before it refuses memory. Shares are one or two files with the quota and the period, both
// in microseconds.
type version struct {
	limits    []string
	usage     string
	reclaimed []string
	shares    []string
}

var (
	version1 = version{[]string{"memory.limit_in_bytes"}, "memory.usage_in_bytes",
		[]string{"total_inactive_file", "total_active_file"}, []string{"cpu.cfs_quota_us", "cpu.cfs_period_us"}}
	version2 = version{[]string{"memory.max", "memory.high"}, "memory.current",
		[]string{"inactive_file", "active_file"}, []string{"cpu.max"}}
)

// lower lowers what is free to what the cgroup leaves. A file that cannot be read is no limit.
func (g group) lower(m *Memory) {
	for _, name := range g.limits {
		limit, ok := g.number(name)
		if !ok {
			continue
		}
		used, ok := g.number(g.usage)
		if !ok {
			continue
		}
		used = max(0, used-g.cached())
		m.Total = min(m.Total, limit)
		if free := max(0, limit-used); free < m.Free {
			m.Free, m.Source = free, fmt.Sprintf("%s of cgroup %s", name, g.name)
		}
	}
}

// share reads how much time of cores a cgroup may take in each period; ok is false without a quota.
func (g group) share() (limit, period int64, ok bool) {
	text := ""
	for _, name := range g.shares {
		more, err := os.ReadFile(filepath.Join(g.dir, name))
		if err != nil {
			return 0, 0, false
		}
		text += string(more) + " "
	}
	n, _ := fmt.Sscan(text, &limit, &period)
	return limit, period, n == 2 && limit > 0 && period > 0
}

// number reads a file of one number; ok is false where it says "max".
func (g group) number(file string) (n int64, ok bool) {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, false
	}
	_, err = fmt.Sscan(string(text), &n)
	return n, err == nil
}

// cached returns how much of a cgroup's usage belongs to files.
func (g group) cached() (sum int64) {
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var name string
		var n int64
		if _, err := fmt.Sscan(line, &name, &n); err == nil && slices.Contains(g.reclaimed, name) {
			sum += n
		}
	}
	return sum
}
