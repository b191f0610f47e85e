package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// For tests.
var IsReserved = isReserved

// Keys returns the names of all keys.
func Keys() (names []string) {
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// Variable returns the environment variable of a key.
func Variable(name string) string {
	k, _ := findKey(name)
	return k.variable()
}

// WithoutKey takes an entry out of the schema until the test ends.
func WithoutKey(t *testing.T, name string) {
	before := keys
	keys = slices.DeleteFunc(slices.Clone(keys), func(k key) bool { return k.name == name })
	t.Cleanup(func() { keys = before })
}

// Reference returns the page that documents every key, in Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, k := range keys {
		def := ""
		if k.def != "" {
			def = "`" + k.def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, def, k.constraint(), k.about)
	}
	for _, k := range keys {
		for i, of := range k.items {
			if i == 0 {
				fmt.Fprintf(&b, "\nEach item of `%s` has these keys:\n\n| key | default | must be | meaning |\n"+
					"|---|---|---|---|\n", k.name)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", of.name, cmp.Or(of.def, " "), of.constraint(), of.about)
		}
	}
	return b.String()
}

const referenceHead = `# Keys of a config

<!-- Generated from the schema in configs/schema.go by "go test ./configs -run TestReference -update". -->

A config is a YAML, JSON or TOML file.
Keys may be nested or have dots: ` + "`grid: {size: [8, 8]}` and `grid.size: [8, 8]`" + ` are the same.
A whole number may be written 5, 5.0 or 5e0.
Environment variables override the file, and ` + "`--set key=value`" + ` overrides both.
The environment variable of ` + "`grid.size` is `HALOX_GRID_SIZE`, that of `boundary.x-` is `HALOX_BOUNDARY_X_MINUS`" + `.
A key set to null gets its default; ` + "`--set checkpoint=null`" + ` resets a section. [Norms](norms.md#norms) has the formulas of ` + "`stop.norm`" + `.

| key | default | must be | meaning |
|---|---|---|---|
`
