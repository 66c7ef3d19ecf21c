package env_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/env"
)

func TestRead(t *testing.T) {
	f := env.Read()
	facts := map[string]string{}
	for _, fact := range f {
		require.NotEmpty(t, fact.Value, fact.Name)
		facts[fact.Name] = fact.Value
		require.Contains(t, f.String(), fact.Name+" "+fact.Value)
	}
	require.Len(t, facts, len(f), "names are unique")
	require.Equal(t, runtime.Version(), facts["go"])
	require.Contains(t, facts, "GSO/GRO")
	require.Contains(t, facts, "cores")
	if runtime.GOOS == "linux" {
		require.Contains(t, facts, "kernel")
		require.Contains(t, facts, "rmem_max")
		require.Contains(t, facts, "load")
	}
}
