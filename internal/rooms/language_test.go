package rooms

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
)

// clean lists the files and folders without wording that TestLanguage rejects; "/..." includes subfolders.
// Add a folder when it is clean. LANGUAGE="halo p2p/..." go test ./internal/rooms -run TestLanguage checks these instead.
var clean = []string{
	"CHANGELOG.md", // only its newest section
	"README.md", "CONTRIBUTING.md", "docs/...", "scripts",
	"domain/...", "stencil", "streams/...", "p2p/...", "kernels/...",
	"halo/...", "solvers", "solvers/scheme", "configs", "results/...",
	"cmd/...", "examples/...", "internal/...",
}

const (
	unit = `us|µs|ms|ns|[kmg]i?b|one|two|three|four|\d+|bytes|operations|points|messages|launches|kernels|threads|blocks|warps` +
		`|copies|registers|slots|streams|words|ranks|steps|sweeps|loads|stores|values|updates|numbers|lines|bits`
	per = `step|device|gpu|process|rank|block|warp|neighbou?r|message|side|axis|launch|pass|exchange|thread|face|sweep|row|cell` +
		`|multiprocessor|host|field|update|value|direction|point|run|record|key|sample|pair|link|scheme|stage|place|line|curve`
	noun = `flag|number|object|list|file|folder|test|stencil|name|power|error|multiple|key|device|type|size|box|text|path|function`
	ise  = `organ|synchron|normal|initial|optim|serial|recogn|minim|maxim|parallel|general|vector|special|summar|util|real` +
		`|character|discret|linear|parametr|quant|stabil|visual|final|random|custom|material|penal|symmetr|diagonal|raster`
)

// wording lists patterns that are wrong wherever they occur, and what to write instead. A space matches a line break too.
var wording = []struct{ pattern, instead string }{
	{`\b(` + unit + `) an? (` + per + `)([\].,;:)|]|$| (on|over|at|than|while)\b)`, "per"},
	{`\bof one's own\b`, "user-defined, separate"},
	{`\b(in vain|for ever|nobody|whom|none such|such a one|thrice|anew|to and fro|for want of|as ever|(never|not) to be had)\b`,
		"plain words"},
	{`\b(whence|thence|hither|hitherto|thereof|thereto|whereof|whilst|amongst|amidst|betwixt)\b`, "plain words"},
	{`\b(1|0|all|same|nothing|anything|everything|none|empty|zero|equal|them|it|ones) but for\b|\bbut for (its|the|those|what)\b`,
		"except"},
	{`\bbeside\b`, "next to, in addition to, compared with, while"},
	{`\b(of|and|in|on) what that\b|\bwhat that (has|had|is given|there)\b`, "name the noun"},
	{`\brefus\w* what\b`, "rejects VALUES"},
	{`\bno longer finite\b|\bwhat is not finite\b`, "non-finite"},
	{`\b(links?|path|connection|network)( that| which)?( is closed or)? (lies?|lied)\b|\blying link`, "corrupts data"},
	{`\bhost devices?\b`, "CPU device"},
	{`(%[a-z]|\d|` + "`" + `|only) (is|are) possible\b|\b(options|accesses) (is|are) possible\b`, "must be ..., got ..."},
	{`%[a-z] (is|are) (no (` + noun + `)s?|none)\b|[^e]( (is|are) no (` + noun + `)s?)\b`, "is not a"},
	{`\b(is|are) there already\b`, "already exists"},
	{`\bmakes? (several|many|%d|\d+|two|three) steps\b`, "runs steps"},
	{`\b(go|host|CPU|its|their) twins?\b`, "Go counterpart"},
	{`\b(couriers?|parcels?|mailbox(es)?|post office)\b`, "message, buffer, queue"},

	{`\b(un|re|de)?(` + ise + `)is(e|ed|es|er|ers|ing|ation|ations)\b`, "American spelling: -iz-"},
	{`\b(neighbour|colour|behaviour|favour|honour|rumour)(s|ed|ing|hood|less|able|ite)?\b`, "American spelling: -or"},
	{`\b(centres?|centred|metres?|kilometres?|grey|licence[sd]?|artefacts?|analys(e|ed|ing)|learnt|spelt|fulfil|programmes?)\b`,
		"American spelling"},
	{`\b(cancel|label|model|travel|signal|level|channel)l(ed|ing)\b`, "American spelling: -led, -ling with one l"},
}

// Pages, help, comments and texts of programs use American technical English.
func TestLanguage(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(wording))
	for i, w := range wording {
		patterns[i] = regexp.MustCompile(`(?m)` + strings.ReplaceAll(w.pattern, " ", `\s+(?://\s*|\*\s+)?`))
	}
	folders := clean
	if more := os.Getenv("LANGUAGE"); more != "" {
		folders = strings.Fields(more)
	}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			for _, file := range filesOf(t, folder) {
				page := prose(file, test.Must(os.ReadFile(filepath.Join("../..", file)))(t))
				text := bytes.ToLower(page)
				for i, pattern := range patterns {
					for _, at := range pattern.FindAllIndex(text, -1) {
						line, found := 1+bytes.Count(text[:at[0]], []byte("\n")), bytes.Fields(text[at[0]:at[1]])
						t.Errorf("%s:%d: %q; write: %s", file, line, bytes.Join(found, []byte(" ")), wording[i].instead)
					}
				}
				if filepath.Ext(file) != ".md" {
					continue
				}
				for _, s := range sentences(string(page)) {
					if n := len(strings.Fields(s.text)); n > 30 {
						t.Errorf("%s:%d: a sentence of %d words, more than 30: %s", file, s.line, n, s.text)
					}
				}
			}
		})
	}
}

// filesOf returns the files of a folder, or of its subfolders too, that hold text of ours.
func filesOf(t *testing.T, folder string) (files []string) {
	t.Helper()
	top, all := strings.CutSuffix(folder, "/...")
	test.Check(t, fs.WalkDir(os.DirFS("../.."), top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != top && (!all || d.Name() == "testdata" || d.Name()[0] == '.'):
			return fs.SkipDir
		case slices.Contains([]string{".go", ".cu", ".cuh", ".c", ".h", ".md", ".yaml", ".sh"}, filepath.Ext(path)) &&
			path != "internal/rooms/language_test.go":
			files = append(files, path)
		}
		return nil
	}))
	if files == nil {
		t.Errorf("%s has no files to check", folder)
	}
	return files
}

var (
	quoted = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|` + "`[^`]*`")
	link   = regexp.MustCompile(`\]\([^)\s]*\)|https?://[^\s)>]+`)
	fences = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code   = regexp.MustCompile("`[^`\n]+`")
	item   = regexp.MustCompile(`^\s*([-*]|\d+\.)\s|^#|^\||^  +\S+( \S+)*  `) // of a list, a heading, a row of a table or of columns
	stop   = regexp.MustCompile(`[.!?:][)"*_]*(\s|$)| · `)
)

// prose keeps comments and literals of a source, and what a page shows: lines stay where they are.
func prose(file string, text []byte) []byte {
	blank := func(b []byte) []byte { return append(bytes.Repeat([]byte("\n"), bytes.Count(b, []byte("\n"))), '|') }
	if filepath.Base(file) == "CHANGELOG.md" {
		if parts := bytes.SplitAfterN(text, []byte("\n## "), 3); len(parts) == 3 {
			text = slices.Concat(parts[0], parts[1])
		}
	}
	switch filepath.Ext(file) {
	case ".md":
		return link.ReplaceAllFunc(text, blank)
	case ".go", ".cu", ".cuh", ".c", ".h":
		var kept []byte
		from := 0
		for _, at := range quoted.FindAllIndex(text, -1) {
			if gap := text[from:at[0]]; len(bytes.TrimSpace(gap)) > 0 {
				kept = append(kept, blank(gap)...)
			} else {
				kept = append(kept, gap...)
			}
			kept, from = append(kept, text[at[0]:at[1]]...), at[1]
		}
		return kept
	}
	return text
}

type sentence struct {
	text string
	line int
}

// sentences returns those of a page outside of code blocks and tables. An item of a list and a heading begin one.
func sentences(page string) (list []sentence) {
	page = fences.ReplaceAllStringFunc(page, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	var now sentence
	end := func() {
		if now.text != "" {
			list = append(list, now)
		}
		now = sentence{}
	}
	for i, line := range strings.Split(code.ReplaceAllString(page, "code"), "\n") {
		if item.MatchString(line) || strings.TrimSpace(line) == "" {
			end()
		}
		if strings.HasPrefix(line, "|") {
			continue
		}
		for line != "" {
			if now.text == "" {
				now.line = i + 1
			}
			at := stop.FindStringIndex(line)
			if at == nil {
				now.text += line + " "
				break
			}
			now.text += line[:at[1]]
			line = line[at[1]:]
			end()
		}
	}
	end()
	return list
}
