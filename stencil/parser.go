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

// The grammar of expressions, from the loosest operators to the tightest. All binary operators group from the left
// except powers, which group from the right.
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
//	number     = digits [ "." [ digits ] ] [ exponent ] | "." digits [ exponent ]
//	exponent   = ( "e" | "E" ) [ "+" | "-" ] digits
//	name       = a letter or "_", followed by letters, digits and "_"

const (
	maxLength = 4096 // bytes of an expression; it bounds the depth of the tree too
	maxNodes  = 1000 // nodes of a tree, and with them the scratch rows of an Evaluator
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

// newParseError returns the error about what follows so many bytes of the source.
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

// A variation says with which coordinates a value changes. It decides how often a value is computed.
type variation uint8

const (
	alongX  variation = 1 << iota // with x: a row of values
	acrossX                       // with y or z: one value a row
	fixed   variation = 0         // with neither: one value
)

// A variable is a name that stands for a value of the point, the grid or the moment.
type variable struct {
	name   string
	varies variation
}

// variables is in the order in which messages list them.
var variables = []variable{
	{"x", alongX}, {"y", acrossX}, {"z", acrossX},
	{"i", alongX}, {"j", acrossX}, {"k", acrossX},
	{"nx", fixed}, {"ny", fixed}, {"nz", fixed},
	{"t", fixed}, {"pi", fixed},
}

// variableNames returns the names that an expression may use.
func variableNames() []string {
	names := make([]string, len(variables))
	for n, v := range variables {
		names[n] = v.name
	}
	return names
}

// A nodeKind says what a node is.
type nodeKind uint8

const (
	numberNode      nodeKind = iota // value
	truthNode                       // value 1 or 0
	nameNode                        // text
	callNode                        // text is the name of the function
	operatorNode                    // text is the operator, of one or two operands
	comparisonsNode                 // text is the operators between the operands, separated by spaces
	choiceNode                      // condition, value if it holds, value if not
)

// A node is a part of an expression as it was written.
type node struct {
	kind     nodeKind
	at       int // bytes before it in the source
	text     string
	value    float64
	operands []*node
}

// parser reads tokens and makes nodes. After the first error every token is the end.
type parser struct {
	source string
	token  string // "" at the end
	at     int    // of the token
	next   int    // where the token after it is looked for
	nodes  int
	err    *ParseError
}

// parseTree returns the syntax tree of an expression. Names and numbers of arguments are unchecked.
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

// fail keeps the first error, and ends the tokens.
func (p *parser) fail(at int, format string, args ...any) {
	if p.err == nil {
		p.err = newParseError(p.source, at, format, args...)
	}
	p.token, p.next = "", len(p.source)
}

// unexpected fails because the token is none of what can stand here.
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

// symbols are the tokens of two characters; all others have one.
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

// length returns how many bytes at the start of s satisfy the condition.
func length(s string, holds func(rune) bool) int {
	if end := strings.IndexFunc(s, func(r rune) bool { return !holds(r) }); end >= 0 {
		return end
	}
	return len(s)
}

// numberLength returns the length of a number at the start of s, with letters and digits that follow it directly: 2x
// and 0x10 are wrong as a whole.
func numberLength(s string) int {
	end := length(s, func(r rune) bool { return isLetter(r) || isDigit(r) || r == '.' })
	if last := s[end-1]; (last == 'e' || last == 'E') && end < len(s) && (s[end] == '+' || s[end] == '-') {
		end += 1 + length(s[end+1:], func(r rune) bool { return isLetter(r) || isDigit(r) || r == '.' })
	}
	return end
}

// accept reads the token if it is one of these, and returns it.
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

// add makes a node, unless there are too many.
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

// choice reads what follows if.
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

// chain reads operands between operators that group from the left.
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

// reserved are the words that are not names.
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
		p.expect(")")
		return inner
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
	p.advance()
	for p.token != ")" && p.err == nil {
		n.operands = append(n.operands, p.expression())
		if p.token == ")" {
			break
		}
		p.expect(",")
		if p.token == ")" {
			p.unexpected("an argument")
		}
	}
	p.expect(")")
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
