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

// networks are those with a name. Bandwidths are what MPI reaches of the line rate; latencies are those of small
// messages between two hosts under one switch, as makers and OSU's benchmarks give them.
func networks() []Network {
	const us, gb = time.Microsecond, 1e9
	return []Network{
		{Name: "10gbe", Latency: 30 * us, Bandwidth: 1.1 * gb, Adapters: 1, Message: 15 * us},
		{Name: "100gbe", Latency: 3 * us, Bandwidth: 11.5 * gb, Adapters: 1, Message: 15 * us},
		{Name: "hdr200", Latency: 1300 * time.Nanosecond, Bandwidth: 24 * gb, Adapters: 1, Message: 15 * us},
		{Name: "hdr200x4", Latency: 1300 * time.Nanosecond, Bandwidth: 24 * gb, Adapters: 4, Message: 15 * us},
		{Name: "ndr400", Latency: 1300 * time.Nanosecond, Bandwidth: 48 * gb, Adapters: 1, Message: 15 * us},
		{Name: "ndr400x4", Latency: 1300 * time.Nanosecond, Bandwidth: 48 * gb, Adapters: 4, Message: 15 * us},
		{Name: "slingshot200x4", Latency: 1800 * time.Nanosecond, Bandwidth: 23 * gb, Adapters: 4, Message: 15 * us},
	}
}

// Names returns the names that FindNetwork knows.
func Names() (names []string) {
	for _, n := range networks() {
		names = append(names, n.Name)
	}
	return names
}

// mostBytes is the size of the largest file that describes a network.
const mostBytes = 1 << 20

// FindNetwork returns the network of a name, or that of a YAML file, if there is one: latency_us, bandwidth_gb_s,
// adapters (1 if left out) and message_us (15).
func FindNetwork(name string) (Network, error) {
	if i := slices.IndexFunc(networks(), func(n Network) bool { return n.Name == name }); i >= 0 {
		return networks()[i], nil
	}
	text, err := read(name)
	if errors.Is(err, os.ErrNotExist) {
		return Network{}, fmt.Errorf(
			"there is no network %q, nor a file of that name: take %s, or a file with latency_us and bandwidth_gb_s",
			name, strings.Join(Names(), ", "),
		)
	}
	if err != nil {
		return Network{}, err
	}
	n, err := readNetwork(text)
	if err != nil {
		return n, fmt.Errorf("%s: %w", name, err)
	}
	if n.Name == "" {
		n.Name = name
	}
	return n, nil
}

// read returns the content of a file, which may be a pipe or a device; more than mostBytes are an error.
func read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if len(text) > mostBytes {
		return nil, fmt.Errorf("%s: it has more than %d bytes", name, mostBytes)
	}
	return text, err
}

// readNetwork reads one that a user wrote.
func readNetwork(text []byte) (Network, error) {
	file := networkFile{Adapters: 1, Message: 15}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil && err != io.EOF {
		return Network{}, err
	}
	if err := file.read(&document); err != nil {
		return Network{}, err
	}
	if err := decoder.Decode(&yaml.Node{}); err != io.EOF {
		return Network{}, errors.New("it describes more than one network")
	}
	for key, us := range map[string]float64{"latency_us": file.Latency, "message_us": file.Message} {
		if !(us >= 0 && us <= longest.Seconds()*1e6) { // a number that is none is no time.Duration
			return Network{}, fmt.Errorf("%s: %v us; 0 to %v are possible", key, us, longest.Microseconds())
		}
	}
	if !(file.Adapters >= 1 && file.Adapters <= mostAdapters && file.Adapters == math.Trunc(file.Adapters)) {
		return Network{}, fmt.Errorf(
			"adapters: %v; whole numbers from 1 to %d are possible", file.Adapters, mostAdapters,
		)
	}
	micros := func(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }
	n := Network{
		Name: file.Name, Latency: micros(file.Latency), Bandwidth: file.Bandwidth * 1e9, Adapters: int(file.Adapters),
		Message: micros(file.Message),
	}
	return n, n.check()
}

// networkFile is what a file says.
type networkFile struct {
	Name                                  string
	Latency, Bandwidth, Adapters, Message float64
}

// read reads a document of keys with their values.
func (f *networkFile) read(document *yaml.Node) error {
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return errors.New(
			"it has no keys with values: want latency_us and bandwidth_gb_s, and adapters, message_us and name where they are known",
		)
	}
	places := map[string]any{
		"name": &f.Name, "latency_us": &f.Latency, "bandwidth_gb_s": &f.Bandwidth, "adapters": &f.Adapters,
		"message_us": &f.Message,
	}
	seen := map[string]bool{}
	pairs := document.Content[0].Content
	for i := 0; i < len(pairs); i += 2 {
		key, value := pairs[i].Value, pairs[i+1]
		place := places[key]
		switch {
		case place == nil:
			return fmt.Errorf(
				"line %d: %q is not a key: latency_us, bandwidth_gb_s, adapters, message_us and name are",
				pairs[i].Line, key,
			)
		case seen[key]:
			return fmt.Errorf("line %d: %s is given twice", pairs[i].Line, key)
		case value.Kind != yaml.ScalarNode || value.Decode(place) != nil:
			return fmt.Errorf(
				"line %d: %s: %q is not what it can be, a number of its unit, or of name a word", value.Line, key,
				value.Value,
			)
		}
		seen[key] = true
	}
	return nil
}

// What a network can be: the longest latency of a message, and the rates of an adapter in bytes/s.
const (
	longest          = time.Minute
	slowest, fastest = 1e3, 1e15
	mostAdapters     = 1024
)

// check refuses what no network can be.
func (n Network) check() error {
	switch {
	case n.Latency < 0 || n.Latency > longest:
		return fmt.Errorf("latency_us: %v us; 0 to %v are possible", n.Latency.Seconds()*1e6, longest.Microseconds())
	case n.Message < 0 || n.Message > longest:
		return fmt.Errorf("message_us: %v us; 0 to %v are possible", n.Message.Seconds()*1e6, longest.Microseconds())
	case !(n.Bandwidth >= slowest && n.Bandwidth <= fastest):
		return fmt.Errorf("bandwidth_gb_s: %v GB/s; %v to %v are possible", n.Bandwidth/1e9, slowest/1e9, fastest/1e9)
	case n.Adapters < 1 || n.Adapters > mostAdapters:
		return fmt.Errorf("adapters: %d; 1 to %d are possible", n.Adapters, mostAdapters)
	case strings.ContainsFunc(n.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("name: %q has what cannot be shown", n.Name)
	}
	return nil
}
