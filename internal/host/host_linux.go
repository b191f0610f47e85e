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

// Host reads the numbers.
type Host struct {
	proc   procfs.FS
	self   procfs.Proc
	memory []group // cgroups that limit memory
	cpu    []group // cgroups that limit the time of cores
}

// Open finds the cgroups of this process, of versions 1 and 2, and their ancestors.
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

// findGroups finds the cgroups, from that of the process up to the mount point of its hierarchy. A kernel without
// cgroups has none.
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

// below returns a cgroup's path relative to the mounted root: the whole path if that is not an ancestor, as in a
// container whose mount shows its own cgroup as the root.
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

// lower reduces the free memory to the rest of a limit of the process.
func (m *Memory) lower(limit, used int64, source string) {
	if limit == math.MaxInt64 {
		return
	}
	m.Total = min(m.Total, limit)
	if free := max(0, limit-used); free < m.Free {
		m.Free, m.Source = free, source
	}
}

// quota returns the number of whole cores in the CPU quotas, math.MaxInt without one.
func (h *Host) quota() int {
	cores := math.MaxInt
	for _, g := range h.cpu {
		if limit, period, ok := g.share(); ok {
			cores = min(cores, int(limit/period))
		}
	}
	return cores
}

// Cores returns the number of cores of the host, including those that this process may not use. ok is false if it is
// not known.
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

// version is the files of a version of cgroups. Reclaimed are the fields of memory.stat that count file memory, which
// the kernel reclaims before an allocation fails. Shares are one or two files with the quota and the period, both in
// microseconds.
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

// lower reduces the free memory to the rest of the cgroup's limit. A file that cannot be read is not a limit.
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

// share reads the CPU quota of a cgroup, as a fraction of the period; ok is false without a quota.
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

// number reads a file of one number; ok is false if it is "max".
func (g group) number(file string) (n int64, ok bool) {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, false
	}
	_, err = fmt.Sscan(string(text), &n)
	return n, err == nil
}

// cached returns the part of a cgroup's usage that is file memory.
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
