package usages

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
)

// PTX instructions: the negative of an integer, and the larger or smaller of two.
var (
	body     = regexp.MustCompile(`\.(?:entry|func) `)
	negative = regexp.MustCompile(`neg\.s32\s+(%r\d+), %r\d+;`)
	extremum = regexp.MustCompile(`(max|min)\.s32\s+(%r\d+), (\S+), (\S+);`)
)

// LostSigns returns where an image computes the largest or smallest of three integers, one of them negated, as max(a,
// max(b, -c)). NVRTC 13.0 to 13.3 compile these to one instruction for sm_90 and later, and lose the sign; if one of
// the three is 0 they use another one, which is correct. The image must be compiled with -lineinfo, so that it has its
// PTX.
func LostSigns(image []byte) (found []string) {
	text := bytes.ReplaceAll(image, []byte{0}, []byte{'\n'})
	starts := body.FindAllIndex(text, -1)
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		found = append(found, lostSignsOf(text[start[0]:end])...)
	}
	return found
}

func lostSignsOf(kernel []byte) (found []string) {
	negated := map[string]bool{}
	for _, m := range negative.FindAllSubmatch(kernel, -1) {
		negated[string(m[1])] = true
	}
	all := extremum.FindAllStringSubmatch(string(kernel), -1)
	for _, inner := range all {
		for _, outer := range all {
			kind, made := inner[1], inner[2]
			if outer[1] != kind || !slices.Contains(outer[3:], made) {
				continue
			}
			operands := slices.Concat(inner[3:], outer[3:])
			isNegated := func(operand string) bool { return negated[operand] }
			if !slices.Contains(operands, "0") && slices.ContainsFunc(operands, isNegated) {
				found = append(found, fmt.Sprintf("%s %s", inner[0], outer[0]))
			}
		}
	}
	return found
}
