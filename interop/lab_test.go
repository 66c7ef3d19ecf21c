//go:build interop && linux

package interop

import (
	"context"
	"os"
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

// TestPortOfRXE checks that opening a softrnic in the guest, beside rxe, fails with the name of the
// owner of its port.
func TestPortOfRXE(t *testing.T) {
	g := lab.Need(t)
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	program, err := os.ReadFile(lab.Binary(t, "softrnic"))
	require.NoError(t, err)
	require.NoError(t, g.WriteFile(ctx, "/lab/softrnic", program))
	for _, f := range families {
		_, err := g.Output(ctx, "/lab/softrnic", "pingpong", "rc", "--addr", f.guest.String())
		require.ErrorContains(t, err, "port 4791 is in use by the kernel's rxe", f.name)
		require.ErrorContains(t, err, "rdma link delete")
	}
	out, err := g.Output(ctx, "/lab/softrnic", "doctor", "--addr", lab.GuestIPv4.String())
	require.Contains(t, out, "in use by the kernel's rdma_rxe ("+lab.Device+")", "%v", err)
}
