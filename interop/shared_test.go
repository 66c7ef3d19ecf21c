//go:build interop && linux

package interop

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
)

// TestSharedAddress runs several processes of softrnic at one address at once, each with a program
// of the guest, as servers and as clients. rxe sends to the address alone.
func TestSharedAddress(t *testing.T) {
	g := lab.Need(t)
	t.Setenv("SOFTRNIC_SHARE", "1")
	programs := []struct {
		cmProgram
		softHosts bool
	}{
		{cmProgram{"rping", "-s -a SERVER -p 7401 -v -V -S 500 -C 20", "-c -a SERVER -I SELF -p 7401 -v -V -S 500 -C 20", `ping data: rdma-ping-19: TUVWXYZ`, ""}, true},
		{cmProgram{"rping", "-s -a SERVER -p 7402 -v -V -S 500 -C 20", "-c -a SERVER -I SELF -p 7402 -v -V -S 500 -C 20", `ping data: rdma-ping-19: TUVWXYZ`, ""}, true},
		{cmProgram{"ucmatose", "-b SERVER -p 7403", "-s SERVER -p 7403", "data transfers complete", "(?s)sending replies.*return status 0"}, true},
		{cmProgram{"udaddy", "-b SERVER", "-s SERVER", "data transfers complete", "return status 0"}, true},
		{cmProgram{"rping", "-s -a SERVER -p 7405 -v -V -S 500 -C 20", "-c -a SERVER -I SELF -p 7405 -v -V -S 500 -C 20", `ping data: rdma-ping-19: TUVWXYZ`, ""}, false},
	}
	errs := make([]error, len(programs))
	var running sync.WaitGroup
	for i, p := range programs {
		running.Go(func() { errs[i] = p.runBoth(t, g, p.softHosts, families[0], "", "") })
	}
	running.Wait()
	for i, err := range errs {
		require.NoError(t, err, programs[i].client)
	}
}
