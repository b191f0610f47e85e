package datatype

import (
	"fmt"
	"strings"
)

// String returns the call that made the type, with its arguments in MPI's order; long lists and deep trees are cut short.
func (t *Type) String() string { return t.string(8) }

func (t *Type) string(depth int) string {
	e := &t.env
	if e.Combiner == Named {
		return e.Basic.String()
	}
	if depth == 0 {
		return "..."
	}
	var args []string
	for _, a := range e.arguments() {
		args = append(args, fmt.Sprint(a))
	}
	return fmt.Sprintf("%v(%s, %s)", e.Combiner, strings.Join(args, ", "), e.children(depth-1))
}

// arguments returns the arguments of the constructor but for the types.
func (e *Envelope) arguments() []any {
	switch e.Combiner {
	case ContiguousCombiner:
		return []any{e.Count}
	case VectorCombiner, HVectorCombiner:
		return []any{e.Count, e.BlockLength, e.Stride}
	case IndexedBlockCombiner, HIndexedBlockCombiner:
		return []any{e.BlockLength, short(e.Displacements)}
	case SubarrayCombiner:
		return []any{short(e.Sizes), short(e.Subsizes), short(e.Starts), e.Order}
	case ResizedCombiner:
		return []any{e.LB, e.Extent}
	}
	return []any{short(e.BlockLengths), short(e.Displacements)}
}

func (e *Envelope) children(depth int) string {
	if e.Combiner != StructCombiner {
		return e.Types[0].string(depth)
	}
	var names []string
	for _, t := range e.Types[:min(longest, len(e.Types))] {
		names = append(names, t.string(depth))
	}
	if len(e.Types) > longest {
		names = append(names, fmt.Sprintf("... %d in all", len(e.Types)))
	}
	return "[" + strings.Join(names, " ") + "]"
}

// longest is how many numbers of a list are printed.
const longest = 6

// short returns a list of numbers, cut short.
func short[T any](numbers []T) string {
	if len(numbers) <= longest {
		return fmt.Sprint(numbers)
	}
	text := fmt.Sprint(numbers[:longest])
	return fmt.Sprintf("%s ... %d in all]", strings.TrimSuffix(text, "]"), len(numbers))
}

// String returns where the bytes lie: of a block first how many they are, of a dimension its count and strides.
func (p Piece) String() string {
	text := fmt.Sprintf("%d B at %d", p.Length, p.Displacement)
	for _, d := range p.Dims[:p.Rank] {
		text += fmt.Sprintf(", %d times %+d", d.Count, d.Stride)
	}
	return text
}

// String returns the pieces, or how many blocks of how many bytes are listed.
func (l *Layout) String() string {
	if !l.Strided() {
		return fmt.Sprintf("%d B in %d blocks of %d to %d", l.size, l.blocks, l.minBlock, l.maxBlock)
	}
	if len(l.pieces) == 0 {
		return "nothing"
	}
	var pieces []string
	for _, p := range l.pieces[:min(longest, len(l.pieces))] {
		pieces = append(pieces, p.String())
	}
	if len(l.pieces) > longest {
		pieces = append(pieces, fmt.Sprintf("... %d in all", len(l.pieces)))
	}
	return strings.Join(pieces, "; ")
}
