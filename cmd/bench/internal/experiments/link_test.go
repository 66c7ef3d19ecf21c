package experiments

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/rnic"
)

// TestPapersUseSockets checks that no experiment of a paper passes packets through shared memory, beside
// opponents that use a network.
func TestPapersUseSockets(t *testing.T) {
	for _, e := range bench.Default.All() {
		if e.Source == bench.Adapter || strings.HasPrefix(e.Name, "sim-") {
			continue
		}
		require.Contains(t, paramNames(e), linkParam.Name, e.Name)
	}

	for value, sockets := range map[string]bool{"": true, "sockets": true, "shm": false} {
		t.Setenv(rnic.EnvLink, "nogro")
		set := bench.Settings{}
		if value != "" {
			set[linkParam.Name] = value
		}
		e := withLink(&bench.Experiment{Name: "one", Run: func(context.Context, *bench.Run) error {
			require.Equal(t, sockets, !link.AllowsSharedMemory(), "link=%s", value)
			return nil
		}})
		_, err := bench.Execute(t.Context(), e, bench.Options{Set: set})
		require.ErrorContains(t, err, "no figures", "link=%s", value)
	}
}

func paramNames(e *bench.Experiment) (names []string) {
	for _, p := range e.Params {
		names = append(names, p.Name)
	}
	return names
}
