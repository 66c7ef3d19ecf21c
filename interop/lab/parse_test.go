//go:build linux

package lab

import (
	"bytes"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cavaliergopher/cpio"
	"github.com/stretchr/testify/require"
)

func TestParseGIDs(t *testing.T) {
	gids := parseGIDs(`==> 0 <==
fe80:0000:0000:0000:5054:00ff:fe12:3456

==> 1 <==
0000:0000:0000:0000:0000:ffff:c000:0202

==> 10 <==
2001:0db8:0000:0000:0000:0000:0000:0002

==> 2 <==
0000:0000:0000:0000:0000:0000:0000:0000
`)
	require.Equal(t, map[netip.Addr]int{netip.MustParseAddr("fe80::5054:ff:fe12:3456"): 0, GuestIPv4: 1, GuestIPv6: 10}, gids)
}

func TestParseCounters(t *testing.T) {
	require.Equal(t, map[string]uint64{"ack_deferred": 0, "rcvd_pkts": 132}, parseCounters("ack_deferred:0\nrcvd_pkts:132\nlifespan:ten\n"))
}

func TestParseDropped(t *testing.T) {
	lost := parseDropped(`qdisc noqueue 0: dev lo root refcnt 2 
 Sent 0 bytes 0 pkt (dropped 9, overlimits 0 requeues 0) 
 backlog 0b 0p requeues 0
qdisc netem 2: dev eth0 parent 1:2 limit 100000 loss 10%
 Sent 12345 bytes 164 pkt (dropped 15, overlimits 0 requeues 0) 
 backlog 0b 0p requeues 0
qdisc netem 3: dev ifb0 root refcnt 2 limit 100000 delay 4ms  reorder 99% gap 1
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) 
`)
	require.Equal(t, map[string]uint64{"2:": 15, "3:": 0}, lost)
}

func TestConsole(t *testing.T) {
	c := newConsole()
	for range 300 {
		_, err := io.WriteString(c, "module loaded\r\n")
		require.NoError(t, err)
	}
	_, err := io.WriteString(c, "LAB-FAILED module rdma_rxe\nLAB-READY\n")
	require.NoError(t, err)
	require.ErrorContains(t, <-c.verdict, "LAB-FAILED module rdma_rxe")
	require.Contains(t, c.String(), "module loaded\nmodule loaded\n")
}

// TestArchive checks that an unpacked archive has the folders, files and links, with their times.
func TestArchive(t *testing.T) {
	root := t.TempDir()
	when := time.Unix(1_700_000_000, 0)
	require.NoError(t, os.Mkdir(filepath.Join(root, "a"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a", "file"), []byte("text"), 0o640))
	require.NoError(t, os.Chtimes(filepath.Join(root, "a", "file"), when, when))
	require.NoError(t, os.Symlink("a/file", filepath.Join(root, "link")))
	var buf bytes.Buffer
	require.NoError(t, archiveFolder(&buf, root))
	require.Equal(t, []entry{{"a", cpio.TypeDir | 0o755, ""}, {"a/file", cpio.TypeReg | 0o640, "text"}, {"link", cpio.TypeSymlink | 0o777, "a/file"}}, entries(t, &buf, when))

	buf.Reset()
	require.NoError(t, archiveFiles(&buf, map[string][]byte{"lab/init": []byte("#!/bin/sh\n")}))
	require.Equal(t, []entry{{"lab/init", cpio.TypeReg | 0o755, "#!/bin/sh\n"}}, entries(t, &buf, time.Time{}))
}

type entry struct {
	name string
	mode cpio.FileMode
	body string
}

// entries returns the entries of an archive in which a file named a/file has the given time.
func entries(t *testing.T, r io.Reader, when time.Time) (list []entry) {
	t.Helper()
	c := cpio.NewReader(r)
	for {
		h, err := c.Next()
		if err == io.EOF {
			return list
		}
		require.NoError(t, err)
		body, err := io.ReadAll(c)
		require.NoError(t, err)
		if h.Linkname != "" {
			body = []byte(h.Linkname)
		}
		if h.Name == "a/file" {
			require.True(t, h.ModTime.Equal(when))
		}
		list = append(list, entry{h.Name, h.Mode, string(body)})
	}
}
