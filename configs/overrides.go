package configs

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// setSource is what messages call the overrides, after the flag that gives them.
const setSource = "--set"

// setLayer reads overrides key=value. Of two for the same key, the later holds.
func setLayer(overrides []string, found *Problems) layer {
	settings := map[string]setting{}
	for _, text := range overrides {
		w := walker{source: setSource, lineless: true, found: found, settings: map[string]setting{}}
		w.override(text)
		for key, s := range w.settings {
			settings[key] = s
		}
	}
	return resolveAxes(settings, found)
}

// override reads one. The key may be a section, and the value then a mapping.
func (w *walker) override(text string) {
	key, value, ok := strings.Cut(text, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		w.found.add(origin{source: w.source}, "", show(scalar(text)), "is not allowed: key=value, as in grid.size=[64, 64]")
		return
	}
	known, _ := findKey(key)
	node, err := parseValue(known, value)
	if err != nil {
		w.found.add(origin{source: w.source}, printable(key), show(scalar(value)), "is not YAML: %v", err)
		return
	}
	if isSection(key) && node.ShortTag() == "!!null" {
		w.found.add(origin{source: w.source}, key, "null", "is not allowed: null resets one key, such as %s", below(key)[0])
		return
	}
	section := ""
	if at := strings.LastIndex(key, "."); at > 0 && isSection(key[:at]) {
		section, key = key[:at], key[at+1:]
	}
	w.entry(section, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, node)
}
