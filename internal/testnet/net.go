// Package testnet makes hosts on one machine for tests: network namespaces with separate host names, linked to a
// bridge. The bytes of each link are counted, and links can be slowed down and cut. It needs root, and the programs ip
// and tc of iproute2.
package testnet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/halox/halox/internal/testmpi"
)

// Variable enables tests that make hosts: make test-netns sets it.
const Variable = "HALOX_TEST_NETNS"

// Net is a set of hosts.
type Net struct {
	Hosts []*Host
	name  string // prefix of all names of namespaces
	agent string // file of a script that starts programs on a host
}

// Host is one of them.
type Host struct {
	Name  string // host name
	space string // the namespace
	port  string // end of its link at the bridge
	net   *Net
}

// New makes n hosts for the duration of the test. It skips the test unless make test-netns has started it and
// namespaces are available.
func New(t *testing.T, hosts int) *Net {
	t.Helper()
	if os.Getenv(Variable) == "" {
		t.Skip("SKIPPED: make test-netns tests over network namespaces, as root")
	}
	if why := lacks(); why != "" {
		t.Skip("SKIPPED: network namespaces are not available: ", why)
	}
	n := &Net{name: fmt.Sprintf("hx%d", os.Getpid())}
	t.Cleanup(func() { n.close(t) })
	n.sh(t, "ip netns add %s", n.bridge())
	n.sh(t, "ip -n %s link add br0 type bridge", n.bridge())
	n.sh(t, "ip -n %s link set br0 up", n.bridge())
	var names strings.Builder
	names.WriteString("127.0.0.1 localhost\n")
	for i := range hosts {
		h := &Host{
			Name: fmt.Sprintf("node%d", i), space: fmt.Sprintf("%s-node%d", n.name, i), port: fmt.Sprintf("port%d", i),
			net: n,
		}
		n.Hosts = append(n.Hosts, h)
		fmt.Fprintf(&names, "%s %s\n", address(i), h.Name)
	}
	for i, h := range n.Hosts {
		n.join(t, h, address(i), names.String())
	}
	n.agent = filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(n.agent, []byte(n.script()), 0o755); err != nil {
		t.Fatal(err)
	}
	return n
}

func address(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

// bridge is the namespace of the bridge.
func (n *Net) bridge() string { return n.name + "-bridge" }

// lacks returns an error if something is missing.
func lacks() string {
	if os.Geteuid() != 0 {
		return "need root"
	}
	for _, program := range []string{"ip", "tc", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			return err.Error()
		}
	}
	probe := fmt.Sprintf("hx%d-probe", os.Getpid())
	if out, err := exec.Command("ip", "netns", "add", probe).CombinedOutput(); err != nil {
		return fmt.Sprintf("ip netns add: %v: %s", err, out)
	}
	defer func() { _ = exec.Command("ip", "netns", "delete", probe).Run() }() // nothing depends on it
	if out, err := exec.Command(
		"ip", "-n", probe, "link", "add", "probe0", "type", "veth", "peer", "name", "probe1",
	).CombinedOutput(); err != nil {
		return fmt.Sprintf("ip link add type veth: %v: %s", err, out)
	}
	return ""
}

// join makes a host, with a link to the bridge.
func (n *Net) join(t *testing.T, h *Host, at, names string) {
	t.Helper()
	folder := filepath.Join("/etc/netns", h.space) // ip netns exec mounts its files over those of /etc
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "hosts"), []byte(names), 0o644); err != nil {
		t.Fatal(err)
	}
	n.sh(t, "ip netns add %s", h.space)
	n.sh(t, "ip -n %s link set lo up", h.space)
	n.sh(t, "ip -n %s link add eth0 type veth peer name %s netns %s", h.space, h.port, n.bridge())
	n.sh(t, "ip -n %s link set %s master br0 up", n.bridge(), h.port)
	n.sh(t, "ip -n %s addr add %s/24 dev eth0", h.space, at)
	n.sh(t, "ip -n %s link set eth0 up", h.space)
}

// script is the program that launchers use instead of ssh: it runs a command on a host.
func (n *Net) script() string {
	return "#!/bin/sh\n" +
		"while [ \"${1#-}\" != \"$1\" ]; do shift; done\n" + // options of ssh
		"host=$1; shift\n" +
		"exec ip netns exec " + n.name + "-$host unshare -u sh -c \"hostname $host; $*\"\n"
}

// close ends all processes on the hosts, and removes the hosts.
func (n *Net) close(t *testing.T) {
	t.Helper()
	for _, h := range n.Hosts {
		for _, pid := range h.pids() {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill() // it may have ended in the meantime
			}
		}
		_ = exec.Command("ip", "netns", "delete", h.space).Run()
		_ = os.RemoveAll(filepath.Join("/etc/netns", h.space))
	}
	_ = exec.Command("ip", "netns", "delete", n.bridge()).Run()
	_ = os.Remove("/etc/netns") // unless it has other files
}

// sh runs a command of words separated by single spaces.
func (n *Net) sh(t *testing.T, format string, args ...any) string {
	t.Helper()
	words := strings.Fields(fmt.Sprintf(format, args...))
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// pids returns the processes of a host.
func (h *Host) pids() (pids []int) {
	out, _ := exec.Command("ip", "netns", "pids", h.space).Output() // nil if the namespace does not exist
	for _, word := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Sent returns the number of bytes that the host has sent over its link, with all headers.
func (h *Host) Sent(t *testing.T) int64 {
	t.Helper()
	text := h.net.sh(t, "ip netns exec %s cat /sys/class/net/eth0/statistics/tx_bytes", h.space)
	sent, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

// Cut takes the link of the host down, like an unplugged cable at the other end.
func (h *Host) Cut(t *testing.T) {
	h.net.sh(t, "ip -n %s link set %s down", h.net.bridge(), h.port)
}

// Slow limits the rate of the host's link, in bits per second.
func (h *Host) Slow(t *testing.T, bits int64) {
	h.net.sh(
		t, "ip netns exec %s tc qdisc replace dev eth0 root tbf rate %dbit burst 64kb latency 400ms", h.space, bits,
	)
}

// Over returns a job that runs on the hosts, with as many ranks on each, host by host.
func (n *Net) Over(in testmpi.Installation, job testmpi.Job) testmpi.Job {
	job.Remote = true
	each := job.Ranks / len(n.Hosts)
	first := n.Hosts[0]
	named := "hostname " + first.Name + `; exec "$@"`
	job.Wrap = []string{"ip", "netns", "exec", first.space, "unshare", "-u", "sh", "-c", named, "sh"}
	var hosts []string
	for _, h := range n.Hosts {
		name := h.Name
		if !in.Hydra {
			name += ":" + strconv.Itoa(each)
		}
		hosts = append(hosts, name)
	}
	list := strings.Join(hosts, ",")
	switch {
	case in.Hydra:
		job.Args = append(
			job.Args, "-launcher", "ssh", "-launcher-exec", n.agent, "-hosts", list, "-ppn", strconv.Itoa(each),
		)
		// Without these MPICH assumes that all hosts share memory.
		job.Env = append(job.Env, "MPIR_CVAR_CH4_NETMOD=ucx", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=eth0")
	case in.Prte():
		job.Args = append(job.Args, "--prtemca", "plm_ssh_agent", n.agent, "--host", list)
	default:
		job.Args = append(
			job.Args, "--mca", "plm_rsh_agent", n.agent, "--mca", "btl_tcp_if_include", "eth0", "--host", list,
		)
	}
	return job
}
