package childtest_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/childtest"
)

func TestMain(m *testing.M) {
	childtest.Serve(func(order *string, pid *int) (err error) {
		if *order != "pid" {
			return fmt.Errorf("unknown order %q", *order)
		}
		*pid = os.Getpid()
		return nil
	})
	os.Exit(m.Run())
}

// TestChild checks that each child is a process of its own, which executes orders until it is killed.
func TestChild(t *testing.T) {
	a, b := childtest.Start[string, int](t), childtest.Start[string, int](t)
	b.Send("pid")
	require.Equal(t, a.Process().Pid, a.Do("pid"))
	require.Equal(t, b.Process().Pid, b.Receive())
	require.NotEqual(t, a.Process().Pid, b.Process().Pid)
	a.Kill()
	require.ErrorIs(t, a.Process().Kill(), os.ErrProcessDone)
	require.Equal(t, b.Process().Pid, b.Do("pid"))
}
