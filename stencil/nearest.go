package stencil

import "strings"

// Nearest returns the candidate that differs from the word in the fewest letters, at most two; "" if there is
// none.
func Nearest(word string, candidates []string) string {
	best, meant := min(3, 1+len(word)/2), ""
	for _, c := range candidates {
		if max(len(c)-len(word), len(word)-len(c)) >= best {
			continue
		}
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < best {
			best, meant = d, c
		}
	}
	return meant
}

// distance is the Levenshtein distance: the number of letters to insert, delete or replace to make a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
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
