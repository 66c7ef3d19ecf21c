//go:build interop && linux

package interop

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
)

// TestLab checks the properties of the guest on which the other tests rely.
func TestLab(t *testing.T) {
	g := lab.Need(t)
	out, err := g.Output(context.Background(), "ibv_devinfo", "-d", lab.Device)
	require.NoError(t, err)
	require.Contains(t, out, "PORT_ACTIVE")
	require.Regexp(t, `active_mtu:\s+4096`, out)
	require.NotEmpty(t, lab.Versions())
}
