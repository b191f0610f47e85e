package forecast

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Network connects hosts. All devices of a host share its adapters.
type Network struct {
	Name      string
	Latency   time.Duration // of the first byte of a message, from host memory to host memory
	Bandwidth float64       // of an adapter, one way, bytes/s
	Adapters  int           // of a host
	Message   time.Duration // additional time of the hosts per message: to pack it, to pass it to MPI, to unpack it
}

// description is a network in the units of files.
type description struct {
	Name      string  `yaml:"name"`
	Latency   float64 `yaml:"latency_us"`
	Bandwidth float64 `yaml:"bandwidth_gb_s"`
	Adapters  float64 `yaml:"adapters"`
	Message   float64 `yaml:"message_us"`
}

// networks are the predefined networks. Bandwidths are those of MPI, below the line rate; latencies are those of small
// messages between two hosts at one switch, from vendors and the OSU benchmarks.
var networks = []description{
	{"10gbe", 30, 1.1, 1, 15},
	{"100gbe", 3, 11.5, 1, 15},
	{"hdr200", 1.3, 24, 1, 15},
	{"hdr200x4", 1.3, 24, 4, 15},
	{"ndr400", 1.3, 48, 1, 15},
	{"ndr400x4", 1.3, 48, 4, 15},
	{"slingshot200x4", 1.8, 23, 4, 15},
}

// Names returns the names that FindNetwork knows.
func Names() (names []string) {
	for _, n := range networks {
		names = append(names, n.Name)
	}
	return names
}

// mostBytes is the size of the largest file that describes a network.
const mostBytes = 1 << 20

// FindNetwork returns a predefined network, or reads a YAML file with latency_us, bandwidth_gb_s, adapters (default 1)
// and message_us (default 15).
func FindNetwork(name string) (Network, error) {
	if i := slices.IndexFunc(networks, func(d description) bool { return d.Name == name }); i >= 0 {
		return networks[i].network()
	}
	n, err := readNetworkFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return n, fmt.Errorf("network: must be one of %[2]s or a file, got %[1]q; a file has latency_us and "+
			"bandwidth_gb_s", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return n, fmt.Errorf("%s: %w", name, err)
	}
	if n.Name == "" {
		n.Name = name
	}
	return n, nil
}

// readNetworkFile reads a file, which may be a pipe or a device.
func readNetworkFile(name string) (Network, error) {
	f, err := os.Open(name)
	if err != nil {
		return Network{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if len(text) > mostBytes {
		err = fmt.Errorf("must have at most %d bytes", mostBytes)
	}
	if err != nil {
		return Network{}, err
	}
	return readNetwork(text)
}

// readNetwork reads the description of one network.
func readNetwork(text []byte) (Network, error) {
	d := description{Adapters: 1, Message: 15}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&d); err == io.EOF {
		return Network{}, errors.New("must have keys with values: latency_us and bandwidth_gb_s, and optionally " +
			"adapters, message_us and name")
	} else if err != nil {
		return Network{}, err
	}
	if err := decoder.Decode(&yaml.Node{}); err != io.EOF {
		return Network{}, errors.New("must describe one network, has several")
	}
	return d.network()
}

// network returns the network, or an error for invalid values.
func (d description) network() (Network, error) {
	for _, v := range []struct {
		key                string
		value, least, most float64
	}{
		{"latency_us", d.Latency, 0, 60e6}, {"message_us", d.Message, 0, 60e6},
		{"bandwidth_gb_s", d.Bandwidth, 1e-6, 1e6}, {"adapters", d.Adapters, 1, 1024},
	} {
		if !(v.value >= v.least && v.value <= v.most) { // also rejects NaN
			return Network{}, fmt.Errorf("%s: must be between %v and %v, got %v", v.key, v.least, v.most, v.value)
		}
	}
	if d.Adapters != math.Trunc(d.Adapters) {
		return Network{}, fmt.Errorf("adapters: must be a whole number, got %v", d.Adapters)
	}
	if strings.ContainsFunc(d.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Network{}, fmt.Errorf("name: must have printable characters only, got %q", d.Name)
	}
	micros := func(us float64) time.Duration { return time.Duration(math.Round(us * float64(time.Microsecond))) }
	return Network{
		Name: d.Name, Latency: micros(d.Latency), Bandwidth: d.Bandwidth * 1e9, Adapters: int(d.Adapters),
		Message: micros(d.Message),
	}, nil
}
