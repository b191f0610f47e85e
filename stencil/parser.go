package stencil

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The grammar of expressions, from the lowest precedence to the highest. All binary operators associate to the
// left except powers, which associate to the right.
//
//	expression = "if" expression "{" expression "}" "else" ( "{" expression "}" | expression that begins with "if" )
//	           | or [ "?" expression ":" expression ]
//	or         = and { ( "or" | "||" ) and }
//	and        = not { ( "and" | "&&" ) not }
//	not        = [ "not" | "!" ] not | comparison
//	comparison = sum { ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum }      a < b < c is a < b and b < c
//	sum        = product { ( "+" | "-" ) product }
//	product    = sign { ( "*" | "/" | "%" ) sign }
//	sign       = ( "+" | "-" ) sign | power                                 -x^2 is -(x^2)
//	power      = operand [ ( "^" | "**" ) sign ]
//	operand    = number | name | name "(" expression { "," expression } ")" | "(" expression ")" | "true" | "false"
//	           | text                                                       the name of a file
//	text       = a quote " or ', followed by other characters, followed by the same quote
//	number     = digits [ "." [ digits ] ] [ exponent ] | "." digits [ exponent ]
//	exponent   = ( "e" | "E" ) [ "+" | "-" ] digits
//	name       = a letter or "_", followed by letters, digits and "_"

const (
	maxLength = 4096 // bytes of an expression; also bounds the depth of the tree
	maxNodes  = 1000 // nodes of a tree; also bounds the scratch rows of an Evaluator
)

// A ParseError describes why a text is not a valid expression. Its message is one line.
type ParseError struct {
	Line, Column int    // 1-based, in characters; 0 if the error concerns the whole text
	Message      string // what is wrong, and what is allowed
}

// Error returns the position and the message. The line is omitted for the first line.
func (e *ParseError) Error() string {
	switch {
	case e.Line > 1:
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	case e.Column > 0:
		return fmt.Sprintf("column %d: %s", e.Column, e.Message)
	}
	return e.Message
}

// newParseError returns an error at the given byte offset of the source.
func newParseError(src string, offset int, format string, args ...any) *ParseError {
	e := &ParseError{Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}
	for _, c := range src[:offset] {
		if e.Column++; c == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	return e
}

// list joins names for a message.
func list(names []string) string { return strings.Join(names, ", ") }

// A variation describes which coordinates a value depends on, and therefore how often it is computed.
type variation uint8

const (
	alongX  variation = 1 << iota // on x: a row of values
	acrossX                       // on y or z: one value per row
	fixed   variation = 0         // on no coordinate: one value
)

// A variable is a name for a value of the point, the grid or the time.
type variable struct {
	name   string
	varies variation
}

// variables are in the order in which messages list them.
var variables = []variable{
	{"x", alongX}, {"y", acrossX}, {"z", acrossX},
	{"i", alongX}, {"j", acrossX}, {"k", acrossX},
	{"nx", fixed}, {"ny", fixed}, {"nz", fixed},
	{"t", fixed}, {"pi", fixed},
}

// noise is the name of the leaf of a Sheet that is a random number at each point. The value of the leaf is the seed.
const noise = "noise"

// file is the name of the leaf of a Sheet that reads the numbers of a file.
const file = "file"

// variableNames returns the names that an expression may use.
func variableNames() []string {
	names := make([]string, len(variables))
	for n, v := range variables {
		names[n] = v.name
	}
	return names
}

// A nodeKind is the kind of a syntax node.
type nodeKind uint8

const (
	numberNode      nodeKind = iota // uses value
	truthNode                       // the value is 1 or 0
	nameNode                        // uses text
	callNode                        // text is the name of the function
	operatorNode                    // text is the operator, of one or two operands
	comparisonsNode                 // text contains the operators between the operands, separated by spaces
	choiceNode                      // condition, value if it holds, value if not
	textNode                        // text without its quotes
)

// A node is a part of an expression as written.
type node struct {
	kind     nodeKind
	at       int // byte offset in the source
	text     string
	value    float64
	operands []*node
}

// A parser reads tokens and builds nodes. After the first error, all remaining tokens are empty.
type parser struct {
	source string
	token  string // "" at the end
	at     int    // offset of the token
	next   int    // offset at which the search for the next token starts
	nodes  int
	err    *ParseError
}

// parseTree returns the syntax tree of an expression. Names and argument counts are not checked.
func parseTree(src string) (*node, error) {
	switch {
	case len(src) > maxLength:
		return nil, &ParseError{Message: fmt.Sprintf("must have at most %d bytes, got %d", maxLength, len(src))}
	case !utf8.ValidString(src):
		return nil, &ParseError{Message: "must be valid UTF-8"}
	case strings.TrimSpace(src) == "":
		return nil, &ParseError{Message: "is empty: must be a number or a formula in " + list(variableNames())}
	}
	p := &parser{source: src}
	p.advance()
	tree := p.expression()
	if p.token != "" {
		p.unexpected("an operator")
	}
	if p.err != nil {
		return nil, p.err
	}
	return tree, nil
}

// fail records an error unless there is an earlier one, and ends the tokens.
func (p *parser) fail(at int, format string, args ...any) {
	if p.err == nil {
		p.err = newParseError(p.source, at, format, args...)
	}
	p.token, p.next = "", len(p.source)
}

// unexpected reports that the token is not allowed here.
func (p *parser) unexpected(want string) {
	switch {
	case p.token == "":
		p.fail(p.at, "the expression ends too early: %s expected", want)
	case p.token == "/" && (strings.HasPrefix(p.source[p.at:], "/*") || strings.HasSuffix(p.source[:p.at], "/")):
		p.fail(p.at, "unexpected %q: %s expected (there are no comments and no integer division)", p.token, want)
	default:
		p.fail(p.at, "unexpected %q: %s expected", p.token, want)
	}
}

// symbols are the tokens of two characters. All other symbols have one character.
var symbols = []string{"**", "<=", ">=", "==", "!=", "&&", "||"}

// advance reads the next token.
func (p *parser) advance() {
	rest := strings.TrimLeftFunc(p.source[p.next:], unicode.IsSpace)
	p.at = len(p.source) - len(rest)
	end := 0
	switch first, size := utf8.DecodeRuneInString(rest); {
	case rest == "":
	case isLetter(first):
		end = length(rest, func(r rune) bool { return isLetter(r) || isDigit(r) })
	case isDigit(first) || first == '.' && len(rest) > 1 && isDigit(rune(rest[1])):
		end = numberLength(rest)
	case first == '"' || first == '\'':
		if end = 2 + strings.IndexRune(rest[1:], first); end < 2 {
			p.fail(p.at, "the quote %c is not closed", first)
			return
		}
	default:
		end = size
		for _, s := range symbols {
			if strings.HasPrefix(rest, s) {
				end = len(s)
			}
		}
	}
	p.token, p.next = rest[:end], p.at+end
}

func isLetter(r rune) bool { return r == '_' || unicode.IsLetter(r) }
func isDigit(r rune) bool  { return '0' <= r && r <= '9' }

// length returns the number of bytes at the start of s whose characters satisfy the condition.
func length(s string, holds func(rune) bool) int {
	if end := strings.IndexFunc(s, func(r rune) bool { return !holds(r) }); end >= 0 {
		return end
	}
	return len(s)
}

// numberLength returns the length of a number at the start of s, including letters and digits that directly follow
// it, so that 2x and 0x10 are rejected as a whole.
func numberLength(s string) int {
	end := length(s, func(r rune) bool { return isLetter(r) || isDigit(r) || r == '.' })
	if last := s[end-1]; (last == 'e' || last == 'E') && end < len(s) && (s[end] == '+' || s[end] == '-') {
		end += 1 + length(s[end+1:], func(r rune) bool { return isLetter(r) || isDigit(r) || r == '.' })
	}
	return end
}

// accept consumes and returns the token if it is one of the given tokens.
func (p *parser) accept(tokens ...string) (token string, ok bool) {
	if token = p.token; token == "" || !slices.Contains(tokens, token) {
		return "", false
	}
	p.advance()
	return token, true
}

func (p *parser) expect(token string) {
	if _, ok := p.accept(token); !ok {
		p.unexpected(strconv.Quote(token))
	}
}

// close consumes the parenthesis that closes the one at an offset.
func (p *parser) close(open int) {
	if p.token == "" {
		p.fail(open, "the parenthesis is not closed: %s expected at the end", strconv.Quote(")"))
	}
	p.expect(")")
}

// add returns a new node. It fails if there are too many nodes.
func (p *parser) add(n node) *node {
	if p.nodes++; p.nodes > maxNodes {
		p.fail(n.at, "the expression must have at most %d numbers, names and operators", maxNodes)
	}
	return &n
}

func (p *parser) operator(at int, text string, operands ...*node) *node {
	return p.add(node{kind: operatorNode, at: at, text: text, operands: operands})
}

func (p *parser) expression() *node {
	at := p.at
	if _, ok := p.accept("if"); ok {
		return p.choice(at)
	}
	first := p.or()
	at = p.at
	if _, ok := p.accept("?"); !ok {
		return first
	}
	yes := p.expression()
	p.expect(":")
	return p.add(node{kind: choiceNode, at: at, operands: []*node{first, yes, p.expression()}})
}

// choice parses the remainder of an if.
func (p *parser) choice(at int) *node {
	condition := p.expression()
	yes := p.block()
	p.expect("else")
	no := (*node)(nil)
	if p.token == "if" {
		no = p.expression()
	} else {
		no = p.block()
	}
	return p.add(node{kind: choiceNode, at: at, operands: []*node{condition, yes, no}})
}

func (p *parser) block() *node {
	p.expect("{")
	inner := p.expression()
	p.expect("}")
	return inner
}

// chain parses operands between left-associative operators.
func (p *parser) chain(operand func() *node, operators ...string) *node {
	n := operand()
	for {
		at := p.at
		text, ok := p.accept(operators...)
		if !ok {
			return n
		}
		n = p.operator(at, text, n, operand())
	}
}

func (p *parser) or() *node      { return p.chain(p.and, "or", "||") }
func (p *parser) and() *node     { return p.chain(p.not, "and", "&&") }
func (p *parser) sum() *node     { return p.chain(p.product, "+", "-") }
func (p *parser) product() *node { return p.chain(p.sign, "*", "/", "%") }

func (p *parser) not() *node {
	at := p.at
	if text, ok := p.accept("not", "!"); ok {
		return p.operator(at, text, p.not())
	}
	return p.comparison()
}

func (p *parser) comparison() *node {
	operands, operators := []*node{p.sum()}, []string(nil)
	at := p.at
	for {
		text, ok := p.accept("<", "<=", ">", ">=", "==", "!=")
		if !ok {
			break
		}
		operators, operands = append(operators, text), append(operands, p.sum())
	}
	if operators == nil {
		return operands[0]
	}
	return p.add(node{kind: comparisonsNode, at: at, text: strings.Join(operators, " "), operands: operands})
}

func (p *parser) sign() *node {
	at := p.at
	if text, ok := p.accept("-", "+"); ok {
		return p.operator(at, text, p.sign())
	}
	return p.power()
}

func (p *parser) power() *node {
	n := p.operand()
	at := p.at
	if _, ok := p.accept("^", "**"); ok {
		return p.operator(at, "^", n, p.sign())
	}
	return n
}

// reserved are words that cannot be used as names.
var reserved = []string{"if", "else", "and", "or", "not", "true", "false"}

func (p *parser) operand() *node {
	token, at := p.token, p.at
	first, _ := utf8.DecodeRuneInString(token)
	switch {
	case token == "true" || token == "false":
		p.advance()
		return p.add(node{kind: truthNode, at: at, value: map[string]float64{"true": 1}[token]})
	case token == "(":
		p.advance()
		inner := p.expression()
		p.close(at)
		return inner
	case first == '"' || first == '\'':
		p.advance()
		return p.add(node{kind: textNode, at: at, text: token[1 : len(token)-1]})
	case token != "" && (isDigit(first) || first == '.' && token != "."):
		return p.number()
	case isLetter(first) && !slices.Contains(reserved, token):
		p.advance()
		if p.token != "(" {
			return p.add(node{kind: nameNode, at: at, text: token})
		}
		return p.call(at, token)
	}
	p.unexpected("a number, a name or a parenthesis")
	return &node{}
}

func (p *parser) call(at int, name string) *node {
	n := node{kind: callNode, at: at, text: name}
	open := p.at
	p.advance()
	for p.token != ")" && p.err == nil {
		n.operands = append(n.operands, p.expression())
		if p.token == ")" || p.token == "" {
			break
		}
		p.expect(",")
		if p.token == ")" {
			p.unexpected("an argument")
		}
	}
	p.close(open)
	return p.add(n)
}

func (p *parser) number() *node {
	token, at := p.token, p.at
	value, err := strconv.ParseFloat(token, 64)
	switch {
	case math.IsInf(value, 0):
		p.fail(at, "the number %s is too large for float64", token)
	case err != nil || strings.ContainsFunc(token, func(r rune) bool { return isLetter(r) && r != 'e' && r != 'E' }):
		p.fail(at, "%q is not a decimal number: a product needs *, as in 2*x", token)
	}
	p.advance()
	return p.add(node{kind: numberNode, at: at, value: value})
}
