package configs

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// variablePrefix is what the names of halox's variables begin with.
const variablePrefix = "HALOX_"

// reserved are variables with a meaning outside the config. A star stands for any ending.
var reserved = []string{"HALOX_CACHE", "HALOX_CUDA", "HALOX_MPI", "HALOX_NCCL", "HALOX_NVRTC", "HALOX_PROBE_*", "HALOX_TEST_*"}

// isReserved reports whether a variable is one of reserved.
func isReserved(name string) bool {
	return slices.ContainsFunc(reserved, func(r string) bool {
		prefix, open := strings.CutSuffix(r, "*")
		return name == r || open && strings.HasPrefix(name, prefix)
	})
}

// environLayer reads the settings of variables HALOX_... Other variables are nobody's business here.
func environLayer(environ []string, found *Problems) layer {
	settings := map[string]setting{}
	values := map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, variablePrefix) && !isReserved(name) {
			values[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if s, ok := variableSetting(name, values[name], found); ok {
			settings[s.key] = s
		}
	}
	return resolveAxes(settings, found)
}

func variableSetting(name, value string, found *Problems) (setting, bool) {
	from := origin{source: printable(name)}
	at := slices.IndexFunc(keys, func(k Key) bool { return k.Variable() == name })
	if at < 0 {
		found.add(from, "", "", "%s", unknownVariable(name))
		return setting{}, false
	}
	node, err := parseValue(keys[at], value)
	if err != nil {
		found.add(from, keys[at].Name, show(scalar(value)), "is not YAML: %v", err)
		return setting{}, false
	}
	return setting{keys[at].Name, node, from}, true
}

func unknownVariable(name string) string {
	var names []string
	for _, k := range keys {
		names = append(names, k.Variable())
	}
	if meant := nearest(name, append(names, reserved...)); meant != "" {
		return "sets no key: did you mean " + meant + "?"
	}
	return "sets no key: variables are named after keys, as HALOX_GRID_SIZE after grid.size"
}

// parseValue reads a value that stands alone. Free text may hold what YAML would take for a mapping: x < 1 ? 2 : 3
func parseValue(k Key, text string) (*yaml.Node, error) {
	if strings.TrimSpace(text) == "" {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	}
	node, err := parseYAML([]byte(text))
	switch {
	case k.free && (err != nil || node.Kind != yaml.ScalarNode):
		return scalar(text), nil
	case err != nil:
		_, reason, _ := yamlPlace(err)
		return nil, errors.New(reason)
	}
	return node, nil
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}
