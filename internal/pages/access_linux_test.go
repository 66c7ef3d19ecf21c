package pages

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestMappingsFromText checks that /proc/self/maps lists the mappings that the kernel returns for a
// query.
func TestMappingsFromText(t *testing.T) {
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 8*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer unix.Munmap(mem)
	for i, prot := range []int{unix.PROT_READ, unix.PROT_NONE, unix.PROT_READ | unix.PROT_WRITE, unix.PROT_READ | unix.PROT_EXEC} {
		require.NoError(t, unix.Mprotect(mem[2*i*page:(2*i+1)*page], prot))
	}
	list, ok := readMappings()
	require.True(t, ok)
	for i := range 8 {
		m, ok := list.lookup(addressOf(mem[i*page:]))
		require.True(t, ok)
		require.False(t, m.file)
		require.Equal(t, i != 2, m.readable, "page %d", i)
		require.Equal(t, i%2 == 1 || i == 4, m.writable, "page %d", i)
		if hasQuery() {
			q, ok := queryMapping(addressOf(mem[i*page:]))
			require.True(t, ok)
			require.Equal(t, q, m)
		}
	}
	_, ok = list.lookup(8)
	require.False(t, ok)
	_, ok = queryMapping(8)
	require.False(t, ok)
}

func TestParseMapping(t *testing.T) {
	for line, want := range map[string]mapping{
		"7f3a1c000000-7f3a1c021000 rw-p 00000000 00:00 0 ":             {0x7f3a1c000000, 0x7f3a1c021000, true, true, false},
		"00400000-0040b000 r-xp 00000000 08:01 1311   /usr/bin/x y":    {0x400000, 0x40b000, true, false, true},
		"7ffc000-7ffd000 ---p 00000000 00:00 0                [stack]": {0x7ffc000, 0x7ffd000, false, false, false},
	} {
		got, ok := parseMapping([]byte(line))
		require.True(t, ok, line)
		require.Equal(t, want, got, line)
	}
	for _, line := range []string{"", "x", "1-2", "zz-2 r--p 0 0 0", "1-2 r 0 0 0"} {
		_, ok := parseMapping([]byte(line))
		require.False(t, ok, line)
	}
}
