package wire_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

var (
	snakeCase = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	sentence  = regexp.MustCompile(`^[A-Z].*\.$`)
)

func TestDropNames(t *testing.T) {
	seen := map[string]bool{}
	for d := range wire.NumDrops {
		require.Regexp(t, snakeCase, d.String())
		require.Regexp(t, sentence, d.Description(), d)
		require.False(t, seen[d.String()], d)
		require.False(t, seen[d.Description()], d)
		seen[d.String()], seen[d.Description()] = true, true
	}
	require.Equal(t, "none", wire.DropNone.String())
	require.Equal(t, "drop_200", wire.Drop(200).String())
	require.Regexp(t, sentence, wire.Drop(200).Description())
}
