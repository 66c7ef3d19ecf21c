//go:build interop && linux

package interop

import (
	"bufio"
	"context"
	"io"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

const (
	patience    = 3 * time.Minute // bound for events that must happen
	programPort = 4000
	quiet       = time.Second // if no message has arrived for this time, none arrives any more
)

var (
	programOnce sync.Once
	programErr  error
)

// startProgram starts the guest's side of package peer, once.
func startProgram(t testing.TB, g *lab.Guest) {
	t.Helper()
	programOnce.Do(func() {
		ctx := context.Background()
		if programErr = g.WriteFile(ctx, "/lab/rxe.py", peer.Program); programErr != nil {
			return
		}
		r, w := io.Pipe()
		var p interface{ Wait() error }
		if p, programErr = g.Start(ctx, w, os.Stderr, "python3", "/lab/rxe.py", "0.0.0.0", "4000"); programErr != nil {
			return
		}
		go func() { w.CloseWithError(p.Wait()) }()
		_, programErr = bufio.NewReader(r).ReadString('\n') // "listening"
	})
	require.NoError(t, programErr)
}

// kind is the pair of adapters, the active side's first.
type kind struct{ a, b string }

var (
	linuxAlone = kind{"rxe", "rxe"} // the reference
	kinds      = []kind{{"rxe", "softrnic"}, {"softrnic", "rxe"}}
)

func (k kind) String() string { return k.a + " to " + k.b }

// family is the IP version of the addresses of a pair.
type family struct {
	name        string
	host, guest netip.Addr
}

var families = []family{{"IPv4", lab.HostIPv4, lab.GuestIPv4}, {"IPv6", lab.HostIPv6, lab.GuestIPv6}}

// open opens an end of a kind until the test ends.
func open(t testing.TB, g *lab.Guest, name string, f family, device rnic.Options, o peer.Options) peer.Side {
	t.Helper()
	var end peer.Side
	var err error
	if name == "rxe" {
		startProgram(t, g)
		end, err = peer.DialLinux(g.ControlAddr(programPort).String(), lab.Device, g.GIDIndex(f.guest), o)
	} else {
		device.Addr = netip.AddrPortFrom(f.host, 0)
		end, err = peer.OpenSoftrnic(device, o)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, end.Close()) })
	return end
}

// poll waits for n completions.
func poll(t testing.TB, end peer.Side, n int) []verbs.WC {
	t.Helper()
	wcs, err := end.Poll(n, patience)
	require.NoError(t, err)
	require.Len(t, wcs, n, "completions of %s", end.Name())
	return wcs
}
