package rnic

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	for late := time.Now().Add(patience); !done(); {
		require.True(t, time.Now().Before(late))
	}
}
