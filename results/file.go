package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/results/internal/wording"
)

// decodeExactly keeps the digits of untyped numbers.
func decodeExactly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// badJSON returns the error of invalid JSON, or that it is truncated.
func badJSON(data []byte) error {
	err := json.Unmarshal(data, new(any))
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("the file is empty")
	}
	if syntax.Offset >= int64(len(data)) {
		return fmt.Errorf("truncated after %d bytes: %w", len(data), err)
	}
	return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
}

// Write writes the record to the file at path as JSON, one row per line, completely or not at all. A symbolic link is
// followed; an existing file is replaced and keeps its mode; a folder, device, pipe or socket is an error. Floats have
// the fewest digits that give the same float64 back. An unknown kind or metric is an error.
func (r *Record) Write(path string) error {
	data, err := r.Encode()
	if err == nil {
		err = files.Write(path, data)
	}
	if err != nil {
		return fmt.Errorf("results: write record %s: %w", path, err)
	}
	return nil
}

// Encode returns the record as Write writes it.
func (r *Record) Encode() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	stamped := *r
	stamped.Schema, stamped.Rows = schemaVersion, []Row{}
	if stamped.Devices == nil {
		stamped.Devices = []Device{}
	}
	data, err := json.MarshalIndent(&stamped, "", "  ")
	if err != nil {
		return nil, err
	}
	const end = "[]\n}" // of the rows, which come last
	out := bytes.NewBuffer(bytes.TrimSuffix(data, []byte(end)))
	out.WriteByte('[')
	for i, row := range r.Rows {
		line, err := json.Marshal(row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		out.Write(line)
	}
	if len(r.Rows) > 0 {
		out.WriteString("\n  ")
	}
	out.WriteString("]\n}\n")
	return out.Bytes(), nil
}

// check rejects records that others could not read.
func (r *Record) check() error {
	if !slices.Contains(kinds(), r.Kind) {
		return fmt.Errorf("unknown kind %q", r.Kind)
	}
	for i, row := range r.Rows {
		for _, v := range row.Values {
			if v.Unit == "" {
				return fmt.Errorf("row %d: unknown metric %q", i+1, v.Metric)
			}
		}
	}
	return nil
}

// Read returns the record in the file at path. Its Settings are made of maps, slices and [json.Number], so that no
// digit is lost. In all texts question marks replace characters that cannot be printed. It is an error if the file is
// not a record, has another schema version than this package writes, is longer than 256 MiB, has more than 256 labels
// or metrics, or is not a regular file.
func Read(path string) (*Record, error) {
	data, err := files.Read(path, mostRecord)
	if err != nil {
		return nil, fmt.Errorf("results: read record: %w", err)
	}
	record, err := decodeRecord(data)
	if err != nil {
		return nil, fmt.Errorf("results: read record %s: %s", path, wording.Short(err.Error()))
	}
	return record, nil
}

// mostRecord is the maximum size of a record in bytes.
const mostRecord = 256 << 20

var (
	errNoRecord = errors.New(`not a halox record: it has no "schema" version`)
	errTrace    = errors.New("not a record but a trace, which halox plot draws, and Perfetto shows")
)

// decodeRecord checks the schema version first, since the rest of a newer record may have other types.
func decodeRecord(data []byte) (*Record, error) {
	if !json.Valid(data) {
		return nil, badJSON(data)
	}
	data = wording.PrintableJSON(data)
	var head struct {
		Schema      json.Number     `json:"schema"`
		TraceEvents json.RawMessage `json:"traceEvents"`
	}
	err := json.Unmarshal(data, &head)
	if head.TraceEvents != nil {
		return nil, errTrace
	}
	if err != nil || head.Schema == "" {
		return nil, errNoRecord
	}
	version, err := head.Schema.Int64()
	switch {
	case err != nil || version < 1:
		return nil, fmt.Errorf("not a halox record: its schema version is %s", head.Schema)
	case version != schemaVersion:
		return nil, fmt.Errorf("the schema version must be %d, got %d", schemaVersion, version)
	}
	record := new(Record)
	if err := decodeExactly(data, record); err != nil {
		return nil, err
	}
	if record.Kind == "" {
		return nil, errors.New(`not a halox record: it has no "kind"`)
	}
	if err := record.checkNames(); err != nil {
		return nil, err
	}
	return record, nil
}

// maxNames is the maximum number of labels, and metrics with units, in the rows of a record. Tables have a column
// for each.
const maxNames = 256

// checkNames returns an error if rows have too many of them.
func (r *Record) checkNames() error {
	names := map[any]bool{}
	for i, row := range r.Rows {
		for _, l := range row.Labels {
			names[l.Name] = true
		}
		for _, v := range row.Values {
			names[[2]string{string(v.Metric), v.Unit}] = true
		}
		if len(names) > maxNames || len(row.Labels) > maxNames || len(row.Values) > maxNames {
			return fmt.Errorf("must have at most %d labels and metrics, exceeded in row %d", maxNames, i+1)
		}
	}
	return nil
}

// A Source is a record with a short name.
type Source struct {
	Name string // short name of the file
	*Record
}

// ReadAll reads the records of some files. A source is named after its file, without the folders that all have in
// common.
func ReadAll(paths ...string) ([]Source, error) {
	names := shortNames(paths)
	var all []Source
	for i, path := range paths {
		r, err := Read(path)
		if err != nil {
			return nil, err
		}
		all = append(all, Source{names[i], r})
	}
	return all, nil
}

// shortNames removes the folders that all paths begin with.
func shortNames(paths []string) []string {
	var parts [][]string
	for _, path := range paths {
		parts = append(parts, strings.Split(filepath.ToSlash(filepath.Clean(path)), "/"))
	}
	for len(parts) > 0 &&
		!slices.ContainsFunc(parts, func(p []string) bool { return len(p) < 2 || p[0] != parts[0][0] }) {
		for i := range parts {
			parts[i] = parts[i][1:]
		}
	}
	var names []string
	for _, p := range parts {
		names = append(names, strings.Join(p, "/"))
	}
	return names
}
