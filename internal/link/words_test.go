package link

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentedWords: the words of SOFTRNIC_LINK in the documentation of package rnic are those that are accepted.
func TestDocumentedWords(t *testing.T) {
	doc, err := os.ReadFile("../../rnic/doc.go")
	require.NoError(t, err)
	line := regexp.MustCompile(`SOFTRNIC_LINK .*: a list of (.*)`).FindSubmatch(doc)
	require.NotNil(t, line)
	documented := strings.FieldsFunc(string(line[1]), func(r rune) bool { return r == ',' || r == ' ' || r == ';' })
	require.ElementsMatch(t, []string{"nogso", "nogro", "nommsg", "portable", "noshm"}, documented)
	for _, word := range documented {
		require.NoError(t, new(Options).applyEnv(word))
	}
	require.Error(t, new(Options).applyEnv("shm"))
}
