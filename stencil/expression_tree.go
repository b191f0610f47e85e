package stencil

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// maxLength is the longest expression accepted, in bytes. It bounds the depth of the tree as well.
const maxLength = 4096

// maxNodes bounds the nodes of a tree, and with them the scratch rows of an Evaluator.
const maxNodes = 1000

// parseTree gives the syntax tree of src, which is as yet unchecked.
func parseTree(src string) (ast.Node, error) {
	switch {
	case len(src) > maxLength:
		return nil, &ParseError{Message: fmt.Sprintf("it has %d bytes: at most %d are allowed", len(src), maxLength)}
	case !utf8.ValidString(src):
		return nil, &ParseError{Message: "it is not valid UTF-8"}
	case strings.TrimSpace(src) == "":
		return nil, &ParseError{Message: "it is empty: a number or a formula in " + list(variableNames())}
	}
	tree, err := parseGuarded(src)
	var at *file.Error
	switch {
	case err == nil:
		return tree, nil
	case errors.As(err, &at):
		return nil, newParseError(src, at.From, "%s", complaint(at.Message))
	}
	return nil, &ParseError{Message: oneLine(err.Error())}
}

// parseGuarded calls the library's parser. A defect of it that panics must cost its user this expression, not the run.
func parseGuarded(src string) (root ast.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be parsed: %v", p)
		}
	}()
	tree, err := parser.ParseWithConfig(src, parserConfig())
	if err != nil {
		return nil, err
	}
	return tree.Node, nil
}

// complaint is the parser's message in one line.
func complaint(message string) string {
	return strings.ReplaceAll(oneLine(message), "unexpected token EOF", "the expression ends too early")
}

// parserConfig makes every call an ordinary one. The library's own functions, some of which (map, filter) have a syntax
// of their own, are then unknown names like any other.
func parserConfig() *conf.Config {
	c := conf.CreateNew()
	c.MaxNodes = maxNodes
	for name := range builtin.Index {
		c.Functions[name] = &builtin.Function{Name: name}
	}
	for name := range functions {
		c.Functions[name] = &builtin.Function{Name: name}
	}
	return c
}
