package configs

import (
	"fmt"
	"strings"
)

// unknown says that a key does not exist, and which one may have been meant: one that is spelt nearly so, or one of
// that name in another section.
func unknown(path, section string) string {
	candidates := below(section)
	for _, k := range keys {
		candidates = append(candidates, k.Name)
	}
	if meant := nearest(path, candidates); meant != "" {
		return fmt.Sprintf("is not a key: did you mean %s?", meant)
	}
	for _, k := range keys {
		if lastName(k.Name) == lastName(path) {
			return fmt.Sprintf("is not a key: did you mean %s?", k.Name)
		}
	}
	return fmt.Sprintf("is not a key: allowed here are %s", listNames(below(section)))
}

// lastName returns a path without the sections in it.
func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// nearest returns the candidate that differs from the word in the fewest letters, two at most; "" when none is near.
func nearest(word string, candidates []string) string {
	best, meant := min(3, 1+len(word)/2), ""
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < best {
			best, meant = d, c
		}
	}
	return meant
}

// distance is Levenshtein's: how many letters must be put in, left out or replaced to make a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// listNames joins the last parts of paths for a message.
func listNames(paths []string) string {
	names := make([]string, len(paths))
	for n, p := range paths {
		names[n] = lastName(p)
	}
	return strings.Join(names, ", ")
}
