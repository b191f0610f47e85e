package wording

import (
	"encoding/json"
	"testing"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"NVIDIA H200, 3 µs ± 2%":         "NVIDIA H200, 3 µs ± 2%",
		"a\x00b\x1b[31mc\x7f\u0085":      "a?b?[31mc??",
		"right\u202eto left\u2066\ufeff": "right?to left??",
		"no UTF-8 \xff\xc3":              "no UTF-8 \ufffd\ufffd",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestPrintableJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": [1, -2.5e3, true, null, "b c"]}`: `{"a": [1, -2.5e3, true, null, "b c"]}`,
		"{\n\t\"a\" : \"\\n\\t\\/\"\r\n}":       "{\n\t\"a\" : \"\\n\\t/\"\r\n}",
		`"\u0000\u001b\u202E\b\f\r"`:            `"??????"`,
		"\"\u202e\x7f\"":                        `"??"`,
		`"\u0022\u005C\\u0000\""`:               `"\"\\\\u0000\""`,
		`"\ud83d\ude00 \ud83d \ude00\u0041"`:    "\"😀 \ufffd \ufffdA\"",
		`{"\u0007": "\\", "b": "\\\""}`:         `{"?": "\\", "b": "\\\""}`,
		`"\u000a"`:                              `"\n"`,
	} {
		if !json.Valid([]byte(text)) {
			t.Fatalf("%q is not JSON", text)
		}
		if got := string(PrintableJSON([]byte(text))); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
