package coll

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every name in the table is an algorithm, and the last rule is for all calls.
func TestDecisionsAreAlgorithms(t *testing.T) {
	for what, rules := range decisions {
		for _, r := range rules {
			_, err := find(Collective(what), r.name)
			require.NoError(t, err)
		}
		last := rules[len(rules)-1]
		require.Equal(t, rule{name: last.name}, last, Collective(what))
	}
}
