//go:build interop && linux

package verbsbench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStreamOnKernelDevice streams between two processes on the device rxe0 of the kernel. Package
// interop runs it in the guest.
func TestStreamOnKernelDevice(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := OpenPair(ctx, Config{MTU: 1024, Device: "rxe0"})
	require.NoError(t, err)
	defer p.Close()
	for _, o := range []StreamOptions{
		{Op: RCWrite, Size: 64}, {Op: RCSend, Size: 64}, {Op: RCRead, Size: 4096}, {Op: RCWrite, Size: 64 << 10}, {Op: RCSend, Size: 64 << 10},
	} {
		s, err := p.OpenStream(ctx, o)
		require.NoError(t, err)
		f, err := s.Round(ctx, 100*time.Millisecond)
		require.NoError(t, err)
		require.Empty(t, f.Failure)
		require.Positive(t, f.Messages)
		t.Logf("%s of %d bytes: %d messages, %.1f MB/s", o.Op, o.Size, f.Messages, f.MBps())
		require.NoError(t, s.Close(ctx))
	}
}
