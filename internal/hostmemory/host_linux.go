package hostmemory

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
	groups []group
}

// Open finds the memory cgroups of this process, of versions 1 and 2, and those around them.
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

// findGroups finds the cgroups, from the process's own up to where its hierarchy is mounted. A kernel
// without cgroups has none.
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
			version, ok := versionOf(g, m)
			if !ok {
				continue
			}
			for path := below(m.Root, g.Path); ; path = filepath.Dir(path) {
				h.groups = append(h.groups, group{version: version, name: filepath.Join(m.Root, path),
					dir: filepath.Join(root, m.MountPoint, path)})
				if path == "/" {
					break
				}
			}
		}
	}
	return nil
}

// versionOf returns the version of a cgroup that a mount shows. ok is false where it shows others, or none
// that limit memory.
func versionOf(g procfs.Cgroup, m *procfs.MountInfo) (v *version, ok bool) {
	if len(g.Controllers) == 0 {
		return &version2, m.FSType == "cgroup2"
	}
	_, memory := m.SuperOptions["memory"]
	return &version1, memory && m.FSType == "cgroup" && slices.Contains(g.Controllers, "memory")
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
	for _, g := range h.groups {
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

func bytes(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// group is one cgroup.
type group struct {
	*version
	name string
	dir  string
}

// version is the files of a version of cgroups. Reclaimed are the fields of memory.stat that count what
// belongs to files: the kernel drops it before it refuses memory.
type version struct {
	limits    []string
	usage     string
	reclaimed []string
}

var (
	version1 = version{[]string{"memory.limit_in_bytes"}, "memory.usage_in_bytes",
		[]string{"total_inactive_file", "total_active_file"}}
	version2 = version{[]string{"memory.max", "memory.high"}, "memory.current",
		[]string{"inactive_file", "active_file"}}
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
