package configs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/stencil"
)

// Limits of a config file.
const (
	maxFile  = 1 << 20 // bytes
	maxKeys  = 10000   // total number of keys and list items
	maxDepth = 32      // nesting of sections and lists
)

// parseFile returns the top-level mapping of a file. The mapping of an empty file is empty.
func parseFile(file string, data []byte) (*yaml.Node, error) {
	switch {
	case len(data) > maxFile:
		return nil, fmt.Errorf("must have at most %d bytes", maxFile)
	case !utf8.Valid(data):
		return nil, errors.New("must be UTF-8 text")
	case strings.EqualFold(filepath.Ext(file), ".toml"):
		return parseTOML(data)
	}
	return parseYAML(data)
}

// parseTOML converts TOML to the YAML nodes of the same config. The nodes have the line numbers of the TOML keys.
func parseTOML(data []byte) (*yaml.Node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	lines, err := tomlLines(data)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	var wrong *toml.DecodeError
	switch err := toml.Unmarshal(data, &all); {
	case errors.As(err, &wrong):
		line, _ := wrong.Position()
		return nil, &syntaxError{line, "not TOML: " + strings.TrimPrefix(wrong.Error(), "toml: ")}
	case err != nil:
		return nil, fmt.Errorf("not TOML: %s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	var root yaml.Node
	if err := root.Encode(all); err != nil {
		return nil, err
	}
	setLines(&root, "", lines)
	return &root, nil
}

// tomlLines returns the line of each key of a TOML file, by the path of the key: its names, separated by NUL bytes.
// Keys in braces have the line of the opening brace. It returns an error if the file exceeds the limits, for which
// toml.Unmarshal would take minutes; toml.Unmarshal reports all other errors.
func tomlLines(data []byte) (map[string]int, error) {
	lines, table, inTable := map[string]int{}, "", 0
	var parser unstable.Parser
	parser.Reset(data)
	var s size
	line, counted := 1, 0
	for parser.NextExpression() {
		e := parser.Expression()
		path, depth := table, inTable
		if e.Kind != unstable.KeyValue {
			path, depth = "", 0
		}
		for part := e.Key(); part.Next(); depth++ {
			at := int(part.Node().Raw.Offset)
			line, counted = line+bytes.Count(data[counted:at], []byte("\n")), at
			if err := s.add(depth, line); err != nil {
				return nil, err
			}
			path += "\x00" + string(part.Node().Data)
			if _, known := lines[path]; !known {
				lines[path] = line
			}
		}
		if e.Kind != unstable.KeyValue {
			table, inTable = path, depth
		} else if err := s.addTOML(e.Value(), depth, line); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// A size counts the keys and items of a file at all levels.
type size int

// add counts an item at a given depth.
func (s *size) add(depth, line int) error {
	switch *s++; {
	case *s > maxKeys:
		return &syntaxError{line, fmt.Sprintf("must have at most %d keys and items", maxKeys)}
	case depth >= maxDepth:
		return &syntaxError{line, fmt.Sprintf("must have at most %d levels", maxDepth)}
	}
	return nil
}

// addTOML counts the content of a value.
func (s *size) addTOML(value *unstable.Node, depth, line int) error {
	if value.Kind != unstable.Array && value.Kind != unstable.InlineTable {
		return nil
	}
	for items := value.Children(); items.Next(); {
		item, within := items.Node(), depth
		if item.Kind == unstable.KeyValue {
			for part := item.Key(); part.Next(); within++ {
				if err := s.add(within, line); err != nil {
					return err
				}
			}
			item = item.Value()
		} else if err := s.add(within, line); err != nil {
			return err
		} else {
			within++
		}
		if err := s.addTOML(item, within, line); err != nil {
			return err
		}
	}
	return nil
}

// addYAML counts the content of a node.
func (s *size) addYAML(n *yaml.Node, depth int) error {
	for i, item := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 0 {
			if err := s.add(depth, item.Line); err != nil {
				return err
			}
		}
		if err := s.addYAML(item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// setLines sets the line numbers of the keys and values of a mapping, or those of its section if a key has none, and
// sorts the keys by line.
func setLines(n *yaml.Node, path string, lines map[string]int) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for pair := range slices.Chunk(n.Content, 2) {
		below := path + "\x00" + pair[0].Value
		pair[0].Line = cmp.Or(lines[below], n.Line)
		pair[1].Line = pair[0].Line
		setLines(pair[1], below, lines)
	}
	pairs := slices.Collect(slices.Chunk(slices.Clone(n.Content), 2))
	slices.SortStableFunc(pairs, func(a, b []*yaml.Node) int { return cmp.Compare(a[0].Line, b[0].Line) })
	n.Content = slices.Concat(pairs...)
}

// A syntaxError is a syntax error at a line.
type syntaxError struct {
	line int
	text string
}

// Error returns the text without the line, which Problems print.
func (e *syntaxError) Error() string { return e.text }

// parseYAML returns nodes, which have line numbers. A panic in the library must not terminate the program.
func parseYAML(data []byte) (root *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, fmt.Errorf("cannot be parsed: %v", p)
		}
	}()
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	case err != nil:
		return nil, yamlError(err)
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, &syntaxError{second.Line, "must be one document, a second one begins here"}
	case !errors.Is(err, io.EOF):
		return nil, yamlError(err)
	}
	return doc.Content[0], new(size).addYAML(doc.Content[0], 0)
}

var (
	yamlForm = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	// Line numbers in errors of the library's parser count from 0, those of its scanner from 1. These are errors of the
	// parser. The line is often the beginning of the block that contains the error.
	parserError = regexp.MustCompile(`^(did not find expected (<|node content|'-' indicator|key|',' or)|` +
		`found (undefined tag|duplicate %|incompatible YAML))`)
)

// yamlError extracts the line number from an error of the YAML library, and joins the rest to a single line.
func yamlError(err error) error {
	e := &syntaxError{text: printable(strings.Join(strings.Fields(err.Error()), " "))}
	if m := yamlForm.FindStringSubmatch(e.text); m != nil {
		e.line, _ = strconv.Atoi(m[1])
		e.text = m[2]
	}
	place := "not YAML: "
	if parserError.MatchString(e.text) {
		e.line++
		place = "not YAML, here or in a later line: "
	}
	if strings.HasPrefix(e.text, "mapping values") || strings.HasSuffix(e.text, "or '}'") {
		e.text += `; a formula with ": " must be in quotes, as "x < 0.5 ? 1 : 0"`
	}
	e.text = place + e.text
	return e
}

// A setting is a value that a source assigns to a key.
type setting struct {
	key  string // as written: boundary.x if it sets boundary.x-
	node *yaml.Node
	from origin
}

// given reports whether a source set it, rather than the schema.
func (s setting) given() bool { return s.from.source != "" }

// A layer contains all settings of one source, by key. Axes of the boundary are resolved into faces.
type layer map[string]setting

// A collector collects the settings below a node.
type collector struct {
	source   string
	problems *Problems
	settings layer
}

// at returns the origin of a node. Only nodes of a file have line numbers.
func (c *collector) at(n *yaml.Node) origin {
	if c.source == setSource {
		return origin{source: setSource}
	}
	return origin{c.source, n.Line}
}

// section reads the keys of a mapping. A section without content is empty.
func (c *collector) section(path string, n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		c.problems.add(c.at(n), path, n, "must have keys with values: %s", namesBelow(path))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		c.entry(path, n.Content[i], n.Content[i+1])
	}
}

// entry reads one key. A key that contains dots is a path.
func (c *collector) entry(section string, name, value *yaml.Node) {
	if name.Kind != yaml.ScalarNode {
		c.problems.add(c.at(name), section, name, "a key must be one of %s", namesBelow(section))
		return
	}
	path := join(section, printable(name.Value))
	_, known := findKey(path)
	switch first, twice := c.settings[path]; {
	case twice && first.from.line > 0:
		c.problems.add(c.at(name), path, nil, "must be given once, is also given in line %d", first.from.line)
	case twice:
		c.problems.add(c.at(name), path, nil, "must be given once")
	case known:
		c.settings[path] = setting{path, value, c.at(name)}
	case isSection(path):
		c.section(path, value)
	case isEntry(path):
		c.settings[path] = setting{path, value, c.at(name)}
	default:
		c.problems.add(c.at(name), path, nil, "%s", unknown(path))
	}
}

// isEntry reports whether a path is that of a named entry of a key, such as output.field.u.
func isEntry(path string) bool {
	return slices.ContainsFunc(keys, func(k key) bool { return k.names() && strings.HasPrefix(path, join(k.name, "")) })
}

// names reports whether the value of a key is a mapping of names.
func (k key) names() bool {
	return strings.HasPrefix(k.must, namesMust) ||
		slices.Contains([]string{"output.picture", "output.field", "exact", "unit", "time.dt"}, k.name)
}

// setEntry sets a named entry in a mapping and returns the mapping. n may be nil or not a mapping if there are no
// entries.
func setEntry(n *yaml.Node, path []string, value *yaml.Node) *yaml.Node {
	if len(path) == 0 {
		return value
	}
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if n != nil && n.Kind == yaml.MappingNode {
		all.Line, all.Content = n.Line, slices.Clone(n.Content)
	}
	for i := 0; i+1 < len(all.Content); i += 2 {
		if all.Content[i].Value == path[0] {
			all.Content[i+1] = setEntry(all.Content[i+1], path[1:], value)
			return all
		}
	}
	all.Content = append(all.Content, scalar(path[0]), setEntry(nil, path[1:], value))
	return all
}

// fileLayer reads the settings of a file. If the file cannot be parsed at all, it records a problem and returns nil.
func fileLayer(file string, data []byte, problems *Problems) layer {
	root, err := parseFile(file, data)
	if err != nil {
		var wrong *syntaxError
		at := origin{source: file}
		if errors.As(err, &wrong) {
			at.line = wrong.line
		}
		problems.add(at, "", nil, "%s", printable(err.Error()))
		return nil
	}
	c := collector{source: file, problems: problems, settings: layer{}}
	c.section("", root)
	return resolveAxes(c.settings)
}

// variablePrefix is the prefix of halox's environment variables.
const variablePrefix = "HALOX_"

// reserved lists environment variables that are not config keys. A star matches any suffix.
var reserved = []string{
	"HALOX_CACHE", "HALOX_CHILD", "HALOX_CUDA", "HALOX_MPI", "HALOX_NCCL", "HALOX_NVRTC", "HALOX_PROBE_*", "HALOX_TEST_*",
}

// isReserved reports whether a variable matches reserved.
func isReserved(name string) bool {
	return slices.ContainsFunc(reserved, func(r string) bool {
		prefix, open := strings.CutSuffix(r, "*")
		return name == r || open && strings.HasPrefix(name, prefix)
	})
}

// environLayer reads the settings of environment variables HALOX_.... If a variable does not set a key but its name is
// similar to one that does, it is a problem. Otherwise it may belong to another package or service, and warn is called.
func environLayer(environ []string, problems *Problems, warn func(Problem)) layer {
	settings := layer{}
	for _, e := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, variablePrefix) || isReserved(name) {
			continue
		}
		from := origin{source: printable(name)}
		at := slices.IndexFunc(keys, func(k key) bool { return k.variable() == name })
		if at < 0 {
			if meant := stencil.Nearest(name, variables()); meant != "" {
				problems.add(from, "", nil, "sets no key, did you mean %s?", meant)
			} else if warn != nil {
				warn(Problem{Source: from.source, Reason: "sets no key, and is ignored"})
			}
			continue
		}
		k := keys[at]
		if node, err := parseValue(k, value); err != nil {
			problems.add(from, k.name, scalar(value), "%v", err)
		} else {
			settings[k.name] = setting{k.name, node, from}
		}
	}
	return resolveAxes(settings)
}

// variables returns the names of the environment variables of all keys.
func variables() []string {
	names := slices.Clone(reserved)
	for _, k := range keys {
		names = append(names, k.variable())
	}
	return names
}

// setLayer reads overrides of the form key=value. A later override of the same key takes precedence.
func setLayer(overrides []string, problems *Problems) layer {
	settings := layer{}
	for _, text := range overrides {
		c := collector{source: setSource, problems: problems, settings: layer{}}
		c.override(text)
		for key, s := range c.settings {
			maps.DeleteFunc(settings, func(set string, _ setting) bool { return strings.HasPrefix(set, join(key, "")) })
			settings[key] = s
		}
	}
	return resolveAxes(settings)
}

// override reads one override. If the key is a section, the value must be a mapping, or null for the defaults of all
// its keys.
func (c *collector) override(text string) {
	from := origin{source: c.source}
	key, value, ok := strings.Cut(text, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		c.problems.add(from, "", scalar(text), "must be key=value, such as grid.size=[64, 64]")
		return
	}
	known, ok := findKey(key)
	if !ok && isEntry(key) {
		known.formula = true
	}
	node, err := parseValue(known, value)
	if err != nil {
		c.problems.add(from, printable(key), scalar(value), "%v", err)
		return
	}
	if isSection(key) && node.ShortTag() == "!!null" {
		for _, k := range keys {
			if strings.HasPrefix(k.name, join(key, "")) {
				c.settings[k.name] = setting{key, node, from}
			}
		}
		return
	}
	c.entry("", scalar(key), node)
}

// parseValue parses a single value. Free text may look like a YAML mapping: x < 1 ? 2 : 3
func parseValue(k key, text string) (*yaml.Node, error) {
	if strings.TrimSpace(text) == "" {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	}
	node, err := parseYAML([]byte(text))
	braces := strings.HasPrefix(strings.TrimSpace(text), "{") && err == nil && node.Kind == yaml.MappingNode
	if k.free() && !braces && (err != nil || node.Kind != yaml.ScalarNode) {
		return scalar(text), nil
	}
	if err != nil {
		return nil, errors.New(strings.Replace(err.Error(), ", here or in a later line", "", 1))
	}
	return node, nil
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// resolveAxes converts axes that a source sets to faces. Within a source, a face takes precedence over its axis.
func resolveAxes(settings layer) layer {
	for axis := range 3 {
		key := "boundary." + "xyz"[axis:axis+1]
		whole, ok := settings[key]
		delete(settings, key)
		for side := range 2 {
			name := "boundary." + faceName(axis, side)
			if _, both := settings[name]; ok && !both {
				settings[name] = whole
			}
		}
	}
	return settings
}

// findKey returns the key with a name.
func findKey(name string) (key, bool) {
	at := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	if at < 0 {
		return key{}, false
	}
	return keys[at], true
}

// variable returns the name of the environment variable that sets the key: HALOX_GRID_SIZE for grid.size,
// HALOX_BOUNDARY_X_MINUS for boundary.x-.
func (k key) variable() string {
	name := strings.NewReplacer(".", "_", "-", "_MINUS", "+", "_PLUS").Replace(k.name)
	return variablePrefix + strings.ToUpper(name)
}

// isSection reports whether there are keys below the path.
func isSection(path string) bool { return len(below(path)) > 0 }

// below returns the full names of the keys directly below a section, or the top-level keys for "".
func below(section string) (all []string) {
	prefix := join(section, "")
	for _, k := range keys {
		rest, ok := strings.CutPrefix(k.name, prefix)
		first, _, _ := strings.Cut(rest, ".")
		if ok && !slices.Contains(all, prefix+first) {
			all = append(all, prefix+first)
		}
	}
	return all
}

// namesBelow formats the result of below, without the section, for a message.
func namesBelow(section string) string {
	return strings.ReplaceAll(strings.Join(below(section), ", "), join(section, ""), "")
}

// join appends a name to the path of a section.
func join(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

// lastName returns the last name of a path.
func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// unknown returns the message for an unknown key. It suggests a key with a similar spelling, or with the same name in
// another section, but never a key that disables a check.
func unknown(path string) string {
	section := path[:max(0, strings.LastIndex(path, "."))]
	if !isSection(section) {
		section = ""
	}
	candidates, elsewhere := below(section), ""
	for _, k := range keys {
		if k.guard {
			candidates = slices.DeleteFunc(candidates, func(name string) bool { return name == k.name })
			continue
		}
		candidates = append(candidates, k.name)
		if elsewhere == "" && lastName(k.name) == lastName(path) {
			elsewhere = k.name
		}
	}
	if meant := cmp.Or(stencil.Nearest(path, candidates), elsewhere); meant != "" {
		return fmt.Sprintf("unknown key, did you mean %s?", meant)
	}
	return fmt.Sprintf("unknown key, must be one of %s", namesBelow(section))
}
