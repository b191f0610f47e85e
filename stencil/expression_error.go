package stencil

import (
	"fmt"
	"strings"
	"unicode"
)

// A ParseError says why a text is not an expression. Its message is one line.
type ParseError struct {
	Line, Column int    // 1-based, in characters; 0 when it is about the whole text
	Message      string // what is wrong, and what is allowed
}

// Error puts the place before the message. The line is named only from the second on.
func (e *ParseError) Error() string {
	switch {
	case e.Line > 1:
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	case e.Column > 0:
		return fmt.Sprintf("column %d: %s", e.Column, e.Message)
	}
	return e.Message
}

// newParseError makes the error for the character at the 0-based offset into src.
func newParseError(src string, offset int, format string, args ...any) *ParseError {
	e := &ParseError{Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}
	for _, c := range src {
		if offset--; offset < 0 {
			break
		}
		if e.Column++; c == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	return e
}

// oneLine makes text from elsewhere fit for one printed line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, text)
}

// list joins names for a message.
func list(names []string) string { return strings.Join(names, ", ") }
