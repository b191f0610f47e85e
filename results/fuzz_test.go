package results

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/halox/halox/internal/test"
)

// Whatever a file holds is a record or an error. What was read can be shown in every form, and
// written so that it reads as the same record.
func FuzzRecord(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.json")
	for _, name := range names {
		data := test.Must(os.ReadFile(name))(f)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRecord(data)
		if (r == nil) == (err == nil) {
			t.Fatalf("a record %v and an error %v", r, err)
		}
		if err == nil {
			show(t, r)
			checkRewritten(t, r)
		}
	})
}

// show writes the record in every form. An error says that the form does not suit.
func show(t *testing.T, r *Record) {
	var text bytes.Buffer
	s := Source{Name: "f.json", Record: r}
	for _, format := range Formats() {
		_ = WriteTable(&text, format, s)
	}
	_ = r.Summary(&text)
	_ = r.Continues(r)
	_, _ = MachineNames([]Source{s}), CommonDevices([]Source{s})
	if len(r.Rows) > 0 {
		_ = r.WriteComparison(&text, []string{r.Rows[0].Contender(), autoEngine})
		_, _ = Filter([]Source{s}, []Condition{{"path", "direct"}}, Time)
		_, _ = r.Find(r.Rows[0])
	}
}

// checkRewritten checks that a record which may be written comes back as it was. What was of an
// older schema has its settings in another order the second time.
func checkRewritten(t *testing.T, r *Record) {
	var texts [3][]byte
	for i := range texts {
		text, err := r.Encode()
		if err != nil && i == 0 {
			return // it is of no kind, or a metric that this halox does not write
		}
		if err == nil {
			r, err = decodeRecord(text)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		texts[i] = text
	}
	if !bytes.Equal(texts[1], texts[2]) {
		t.Fatalf("wrote\n%s\nand then\n%s", texts[1], texts[2])
	}
}
