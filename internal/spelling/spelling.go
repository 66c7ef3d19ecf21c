// Package spelling finds the known word that a misspelt one stands for, for the errors of names,
// flags and values.
//
//	return fmt.Errorf("unknown experiment %q%s", name, spelling.Hint(name, known...))
package spelling

import (
	"fmt"
	"strings"
)

// Nearest returns the known word with the smallest edit distance to word, of several the first,
// without regard to case. It returns "" if more than a third of the letters would have to
// change, or if word has fewer than three, so that any word would be near.
func Nearest(word string, known ...string) string {
	if len(word) < 3 {
		return ""
	}
	nearest, least := "", (len(word)+2)/3+1
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			nearest, least = k, d
		}
	}
	return nearest
}

// Hint returns `; did you mean "nearest"?` to end an error with, or "" if Nearest returns "".
func Hint(word string, known ...string) string {
	if nearest := Nearest(word, known...); nearest != "" {
		return fmt.Sprintf("; did you mean %q?", nearest)
	}
	return ""
}

// distance returns the smallest number of bytes to insert, remove or replace, and of neighbours
// to exchange, that turns a into b (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
