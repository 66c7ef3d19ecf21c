package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pcapng blocks: a section header, an interface and a packet.
const (
	section   = "\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x1c\x00\x00\x00"
	described = section + "\x01\x00\x00\x00\x14\x00\x00\x00\x65\x00\x00\x00\x00\x00\x00\x00\x14\x00\x00\x00"
	captured  = described + "\x06\x00\x00\x00\x20\x00\x00\x00"
)

// TestHasPackets checks which files a program may overwrite.
func TestHasPackets(t *testing.T) {
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	_, err := z.Write([]byte(captured + "0123456789abcdef"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for text, want := range map[string]bool{
		"": false, section: false, described: false, described[:40]: false, captured + "0123": true,
		"notes of the user": true, "notes": true, compressed.String(): true, "\x1f\x8b\x08": false,
	} {
		require.Equal(t, want, hasPackets(strings.NewReader(text)), "%q", text)
	}
}

// TestCapturePath checks the names for the files of devices, in a directory with a long name.
func TestCapturePath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 150))
	require.NoError(t, os.Mkdir(dir, 0o755))
	file := filepath.Join(dir, "x.pcapng")
	require.Equal(t, file, capturePath(file, 0))
	first := captureLock
	defer first.Close()
	require.Regexp(t, `/x\.pcapng\.\d+\.1$`, capturePath(file, 1))
	require.Regexp(t, `/x\.pcapng\.\d+\.0$`, capturePath(file, 0), "the first one runs")
	require.NoError(t, first.Close())
	require.Equal(t, file, capturePath(file, 0), "it ended without packets")
	require.NoError(t, captureLock.Close())
	require.NoError(t, os.WriteFile(file, []byte(captured+"0123"), 0o644))
	require.Regexp(t, `/x\.pcapng\.\d+\.0$`, capturePath(file, 0), "it has packets")
}
