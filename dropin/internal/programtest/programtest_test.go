package programtest_test

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

func TestMain(m *testing.M) { os.Exit(programtest.RunTests(m)) }

// TestWaitListening checks that a listener is noticed without a connection to it.
func TestWaitListening(t *testing.T) {
	port := programtest.FreePort(t)
	for _, network := range []string{"tcp4", "tcp"} {
		l, err := net.Listen(network, ":"+port)
		require.NoError(t, err)
		programtest.WaitListening(t, port)
		require.NoError(t, l.Close())
	}
}

// The work directory exists while the tests run.
func ExampleWorkDir() {
	info, err := os.Stat(programtest.WorkDir())
	fmt.Println(err == nil && info.IsDir())
	// Output: true
}
