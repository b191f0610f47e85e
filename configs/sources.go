package configs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"go.yaml.in/yaml/v3"
)

// Limits of a file. Above them it is not a config.
const (
	maxFile  = 1 << 20 // bytes
	maxKeys  = 10000   // keys, and items of lists, in all
	maxDepth = 32      // sections and lists in each other
)

// parseFile returns the mapping at the top of a file; an empty one for an empty file.
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

// parseTOML returns TOML as the nodes of the same config in YAML, with the lines of keys.
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

// tomlLines returns the line of each key of a TOML file, by its path, with zeros between the names. Keys in braces lie
// where the braces begin. It returns an error for what exceeds the limits, for which toml.Unmarshal takes minutes;
// other errors are left to that.
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

// A size counts the keys and items of a file, of all its levels.
type size int

// add counts one that lies in depth others.
func (s *size) add(depth, line int) error {
	switch *s++; {
	case *s > maxKeys:
		return &syntaxError{line, fmt.Sprintf("must have at most %d keys and items", maxKeys)}
	case depth >= maxDepth:
		return &syntaxError{line, fmt.Sprintf("must have at most %d levels", maxDepth)}
	}
	return nil
}

// addTOML counts what a value holds.
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

// addYAML counts what a node holds.
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

// setLines gives the keys and values of a mapping their lines, or that of the section, and puts them in that order.
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

// A syntaxError says where a text is not what its format allows.
type syntaxError struct {
	line int
	text string
}

func (e *syntaxError) Error() string { return e.text }

// parseYAML keeps the nodes, for their lines. A defect of the library that panics must not end the program.
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
		return nil, &syntaxError{second.Line, "must be one document, and here a second one begins"}
	case !errors.Is(err, io.EOF):
		return nil, yamlError(err)
	}
	return doc.Content[0], new(size).addYAML(doc.Content[0], 0)
}

var (
	yamlForm = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	// The library counts lines from 0 in the errors of its parser, which are these, and from 1 in those of its scanner.
	// The line is often where the block began that the error is in.
	parserError = regexp.MustCompile(`^(did not find expected (<|node content|'-' indicator|key|',' or)|` +
		`found (undefined tag|duplicate %|incompatible YAML))`)
)

// yamlError takes the line out of an error of the YAML library, and makes the rest one line.
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
	e.text = place + e.text
	return e
}

// A setting is a value that a source gives to a key.
type setting struct {
	key  string // as given, so boundary.x where it stands for boundary.x-
	node *yaml.Node
	from origin
}

// given reports whether a source set it, and not the schema.
func (s setting) given() bool { return s.from.source != "" }

// A layer is all that one source sets, by key. Axes of the boundary are resolved into faces.
type layer map[string]setting

// A collector collects the settings below a node.
type collector struct {
	source   string
	problems *Problems
	settings layer
}

// at is where a node is: lines are those of a file.
func (c *collector) at(n *yaml.Node) origin {
	if c.source == setSource {
		return origin{source: setSource}
	}
	return origin{c.source, n.Line}
}

// section reads the keys of a mapping. One without any content is empty.
func (c *collector) section(path string, n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		c.problems.add(c.at(n), path, n, "must have keys with values, of %s", namesBelow(path))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		c.entry(path, n.Content[i], n.Content[i+1])
	}
}

// entry reads one key. A key with dots is the path to one further down.
func (c *collector) entry(section string, name, value *yaml.Node) {
	if name.Kind != yaml.ScalarNode {
		c.problems.add(c.at(name), section, name, "a key must be one of %s", namesBelow(section))
		return
	}
	path := join(section, printable(name.Value))
	_, known := findKey(path)
	switch first, twice := c.settings[path]; {
	case twice && first.from.line > 0:
		c.problems.add(c.at(name), path, nil, "must be given once, and is given in line %d", first.from.line)
	case twice:
		c.problems.add(c.at(name), path, nil, "must be given once")
	case known:
		c.settings[path] = setting{path, value, c.at(name)}
	case isSection(path):
		c.section(path, value)
	default:
		c.problems.add(c.at(name), path, nil, "%s", unknown(path))
	}
}

// fileLayer reads the settings of a file. It returns nil, with a problem, when the file cannot be understood at all.
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

// variablePrefix is what the names of halox's variables begin with.
const variablePrefix = "HALOX_"

// reserved are variables with a meaning outside the config. A star stands for any ending.
var reserved = []string{
	"HALOX_CACHE", "HALOX_CUDA", "HALOX_MPI", "HALOX_NCCL", "HALOX_NVRTC", "HALOX_PROBE_*", "HALOX_TEST_*",
}

// isReserved reports whether a variable is one of reserved.
func isReserved(name string) bool {
	return slices.ContainsFunc(reserved, func(r string) bool {
		prefix, open := strings.CutSuffix(r, "*")
		return name == r || open && strings.HasPrefix(name, prefix)
	})
}

// environLayer reads the settings of variables HALOX_... One that sets no key is a problem if it is nearly the name of
// one that does. Else others may have set it, for a package or a service of that name, and warn is told.
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
			if meant := nearest(name, variables()); meant != "" {
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

// variables returns the names that variables may have.
func variables() []string {
	names := slices.Clone(reserved)
	for _, k := range keys {
		names = append(names, k.variable())
	}
	return names
}

// setLayer reads overrides key=value. Of two for the same key, the later holds.
func setLayer(overrides []string, problems *Problems) layer {
	settings := layer{}
	for _, text := range overrides {
		c := collector{source: setSource, problems: problems, settings: layer{}}
		c.override(text)
		for key, s := range c.settings {
			settings[key] = s
		}
	}
	return resolveAxes(settings)
}

// override reads one. The key may be a section, and the value then a mapping.
func (c *collector) override(text string) {
	from := origin{source: c.source}
	key, value, ok := strings.Cut(text, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		c.problems.add(from, "", scalar(text), "must be key=value, as in grid.size=[64, 64]")
		return
	}
	known, _ := findKey(key)
	node, err := parseValue(known, value)
	if err != nil {
		c.problems.add(from, printable(key), scalar(value), "%v", err)
		return
	}
	if isSection(key) && node.ShortTag() == "!!null" {
		c.problems.add(from, key, node, "must be a key where it is reset, such as %s", below(key)[0])
		return
	}
	c.entry("", scalar(key), node)
}

// parseValue reads a value that stands alone. Free text may hold what YAML would take for a mapping: x < 1 ? 2 : 3
func parseValue(k key, text string) (*yaml.Node, error) {
	if strings.TrimSpace(text) == "" {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	}
	node, err := parseYAML([]byte(text))
	if k.free() && (err != nil || node.Kind != yaml.ScalarNode) {
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

// resolveAxes turns the axes that one source sets into faces. Within a source, a face says more than its axis.
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

// findKey returns the key of a name.
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

// isSection reports whether keys stand below the path.
func isSection(path string) bool { return len(below(path)) > 0 }

// below returns the full names of what may stand directly under a section, or at the top for "".
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

// namesBelow lists what below returns, without the section, for a message.
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

// lastName returns a path without the sections in it.
func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// unknown says that a key does not exist, and which one may have been meant: one that is spelled nearly so, or one of
// that name in another section. It suggests no key that switches a check off.
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
	if meant := cmp.Or(nearest(path, candidates), elsewhere); meant != "" {
		return fmt.Sprintf("unknown key, did you mean %s?", meant)
	}
	return fmt.Sprintf("unknown key, must be one of %s", namesBelow(section))
}

// nearest returns the candidate that differs from the word in the fewest letters, two at most; "" when none is near.
func nearest(word string, candidates []string) string {
	best, meant := min(3, 1+len(word)/2), ""
	for _, c := range candidates {
		if max(len(c)-len(word), len(word)-len(c)) >= best {
			continue
		}
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < best {
			best, meant = d, c
		}
	}
	return meant
}

// distance is Levenshtein's: how many letters must be inserted, deleted or replaced to make a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
