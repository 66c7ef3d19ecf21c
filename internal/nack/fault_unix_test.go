//go:build unix

package nack

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestUnreadableMessage checks that a message with unreadable memory is not delivered, and that
// later messages are.
func TestUnreadableMessage(t *testing.T) {
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer unix.Munmap(mem)
	require.NoError(t, unix.Mprotect(mem[page:], unix.PROT_NONE))
	p := newPair(t, Options{Slots: 16})
	for _, n := range []int{1, 100, 5 * minMTU / 2} {
		free := len(p.end[0].slots.free)
		before := p.end[0].Stats
		require.ErrorIs(t, p.end[0].Send(p.now, 1, []byte("head"), mem[page-n:page+1]), ErrFault)
		require.Len(t, p.end[0].slots.free, free)
		require.Equal(t, before, p.end[0].Stats)
		p.send(0, "readable")
		p.run(100 * ms)
	}
	require.Equal(t, []string{"readable", "readable", "readable"}, p.got[1])
	p.requireIdle()
}
