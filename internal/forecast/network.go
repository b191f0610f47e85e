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

// Network joins hosts. All devices of a host share its adapters.
type Network struct {
	Name      string
	Latency   time.Duration // of the first byte of a message, from host memory to host memory
	Bandwidth float64       // of an adapter, one way, bytes/s
	Adapters  int           // of a host
	Message   time.Duration // what a message takes the hosts beside that: to pack it, to hand it to MPI, to unpack it
}

// description is a network in the units of files.
type description struct {
	Name      string  `yaml:"name"`
	Latency   float64 `yaml:"latency_us"`
	Bandwidth float64 `yaml:"bandwidth_gb_s"`
	Adapters  float64 `yaml:"adapters"`
	Message   float64 `yaml:"message_us"`
}

// networks are those with a name. Bandwidths are what MPI reaches of the line rate; latencies are those of small
// messages between two hosts under one switch, as makers and OSU's benchmarks give them.
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

// FindNetwork returns the network of a name, or that of a YAML file, if there is one: latency_us, bandwidth_gb_s,
// adapters (1 if left out) and message_us (15).
func FindNetwork(name string) (Network, error) {
	if i := slices.IndexFunc(networks, func(d description) bool { return d.Name == name }); i >= 0 {
		return networks[i].network()
	}
	n, err := readNetworkFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return n, fmt.Errorf("there is no network %q, nor a file of that name: take %s, or a file with latency_us and "+
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
		err = fmt.Errorf("it has more than %d bytes", mostBytes)
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
		return Network{}, errors.New("it has no keys with values: want latency_us and bandwidth_gb_s, and adapters, " +
			"message_us and name where they are known")
	} else if err != nil {
		return Network{}, err
	}
	if err := decoder.Decode(&yaml.Node{}); err != io.EOF {
		return Network{}, errors.New("it describes more than one network")
	}
	return d.network()
}

// network returns the network, unless it is impossible.
func (d description) network() (Network, error) {
	for _, v := range []struct {
		key                string
		value, least, most float64
	}{
		{"latency_us", d.Latency, 0, 60e6}, {"message_us", d.Message, 0, 60e6},
		{"bandwidth_gb_s", d.Bandwidth, 1e-6, 1e6}, {"adapters", d.Adapters, 1, 1024},
	} {
		if !(v.value >= v.least && v.value <= v.most) { // NaN is neither
			return Network{}, fmt.Errorf("%s: %v; must be between %v and %v", v.key, v.value, v.least, v.most)
		}
	}
	if d.Adapters != math.Trunc(d.Adapters) {
		return Network{}, fmt.Errorf("adapters: %v; must be a whole number", d.Adapters)
	}
	if strings.ContainsFunc(d.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Network{}, fmt.Errorf("name: %q has characters that cannot be shown", d.Name)
	}
	micros := func(us float64) time.Duration { return time.Duration(math.Round(us * float64(time.Microsecond))) }
	return Network{
		Name: d.Name, Latency: micros(d.Latency), Bandwidth: d.Bandwidth * 1e9, Adapters: int(d.Adapters),
		Message: micros(d.Message),
	}, nil
}
