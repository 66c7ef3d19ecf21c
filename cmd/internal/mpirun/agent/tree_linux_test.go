package agent

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDescendants(t *testing.T) {
	// An orphaned descendant is adopted, and signals reach it.
	read, write, err := os.Pipe()
	require.NoError(t, err)
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "sleep 60 & read x; exit"}, &os.ProcAttr{Files: []*os.File{read, nil, nil}})
	require.NoError(t, err)
	read.Close()
	for deadline := time.Now().Add(time.Minute); ; {
		list, err := descendants(os.Getpid())
		require.NoError(t, err)
		if len(list) == 2 { // the child and its child
			break
		}
		require.True(t, time.Now().Before(deadline))
	}
	tr := newProcessTree()
	write.Close()
	_, err = p.Wait()
	require.NoError(t, err)
	require.Equal(t, 1, tr.signalAll(false)) // adopted by this process and signaled
	for tr.signalAll(true) > 0 {
	}
}
