package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// maxFile is the size, in bytes, above which a file is not a config.
const maxFile = 1 << 20

// fileLayer reads the settings of a file. It returns nil, with a problem, when the file cannot be understood at all.
func fileLayer(file string, data []byte, found *Problems) layer {
	root, err := parseFile(file, data)
	if err != nil {
		line, text, vague := yamlPlace(err)
		if vague {
			text = "this or a later line is not YAML: " + text
		}
		found.add(origin{file, line}, "", "", "%s", text)
		return nil
	}
	w := walker{source: file, found: found, settings: map[string]setting{}}
	w.section("", root)
	return resolveAxes(w.settings, found)
}

// parseFile returns the mapping at the top of a file; an empty one for an empty file.
func parseFile(file string, data []byte) (*yaml.Node, error) {
	switch {
	case len(data) > maxFile:
		return nil, fmt.Errorf("it has more than %d bytes, the most that a config may have", maxFile)
	case !utf8.Valid(data):
		return nil, errors.New("it is not valid UTF-8 text")
	case strings.EqualFold(filepath.Ext(file), ".toml"):
		return parseTOML(data)
	}
	return parseYAML(data)
}

// parseTOML leaves TOML to viper. Its settings have no lines.
func parseTOML(data []byte) (*yaml.Node, error) {
	v := viper.New()
	v.SetConfigType("toml")
	if err := v.ReadConfig(bytes.NewReader(data)); err != nil {
		return nil, err
	}
	var root yaml.Node
	if err := root.Encode(v.AllSettings()); err != nil {
		return nil, err
	}
	return &root, nil
}

// parseYAML keeps the nodes, for their lines. A defect of the library that panics must not end the program.
func parseYAML(data []byte) (root *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, fmt.Errorf("it cannot be parsed: %v", p)
		}
	}()
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	case err != nil:
		return nil, err
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("yaml: line %d: a second document begins: only one is allowed", second.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return doc.Content[0], nil
}

var (
	yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	// The library counts lines from 0 in the errors of its parser, which are these, and from 1 in those of its scanner.
	// The line is often where the block began that the error is in.
	parserError = regexp.MustCompile(`^(did not find expected (<|node content|'-' indicator|key|',' or)|found (undefined tag|duplicate %|incompatible YAML))`)
)

// yamlPlace takes the line out of an error of the YAML library, 0 when there is none, and makes the rest one line. A
// vague line may lie before the one that is wrong.
func yamlPlace(err error) (line int, text string, vague bool) {
	text = printable(strings.Join(strings.Fields(err.Error()), " "))
	if m := yamlError.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	if parserError.MatchString(text) {
		return line + 1, text, true
	}
	return line, text, false
}

// A walker collects the settings below a node.
type walker struct {
	source   string
	lineless bool // the nodes' lines are not those of a file
	found    *Problems
	settings map[string]setting
}

func (w *walker) at(n *yaml.Node) origin {
	if w.lineless {
		return origin{source: w.source}
	}
	return origin{w.source, n.Line}
}

// section reads the keys of a mapping. One without any content is empty.
func (w *walker) section(path string, n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		w.found.add(w.at(n), path, show(n), "is not allowed: keys with their values, of %s", listNames(below(path)))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		w.entry(path, n.Content[i], n.Content[i+1])
	}
}

// entry reads one key. A key with dots is the path to one further down.
func (w *walker) entry(section string, name, value *yaml.Node) {
	if name.Kind != yaml.ScalarNode {
		w.found.add(w.at(name), section, show(name), "is not allowed as a key: one of %s", listNames(below(section)))
		return
	}
	path := join(section, printable(name.Value))
	_, known := findKey(path)
	switch first, twice := w.settings[path]; {
	case twice:
		where := ""
		if first.from.line > 0 {
			where = fmt.Sprintf(": the first is on line %d", first.from.line)
		}
		w.found.add(w.at(name), path, show(value), "is given twice%s", where)
	case known:
		w.settings[path] = setting{path, value, w.at(name)}
	case isSection(path):
		w.section(path, value)
	default:
		w.found.add(w.at(name), path, "", "%s", unknown(path, section))
	}
}
