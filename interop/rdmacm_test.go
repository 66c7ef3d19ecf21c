//go:build interop && linux

package interop

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
)

// cmProgram is a program of rdmacm-utils. Softrnic's takes the same arguments.
type cmProgram struct {
	name           string
	server, client string // arguments, where SERVER and SELF are addresses
	proof          string // in the output of both
	clientProof    string // more of it in the client's
}

var cmPrograms = []cmProgram{
	{"rping", "-s -a SERVER -v -V -S 500 -C 20", "-c -a SERVER -I SELF -v -V -S 500 -C 20", `ping data: rdma-ping-19: TUVWXYZ`, "(?s)rdma-ping-0: ABC.*rdma-ping-10: KLM"},
	{"rping", "-s -a SERVER -V -S 65535", "-c -a SERVER -V -S 65535 -C 3", `DISCONNECT EVENT`, ""},
	{"ucmatose", "-b SERVER", "-s SERVER", "data transfers complete", "(?s)sending replies.*return status 0"},
	{"ucmatose", "-b SERVER -c 5 -C 30 -S 9000", "-s SERVER -b SELF -c 5 -C 30 -S 9000 -t 32 -a 15", "data transfers complete", "(?s)sending replies.*return status 0"},
	{"ucmatose", "-b SERVER -P ib -c 2", "-s SERVER -P ib -c 2", "data transfers complete", "(?s)sending replies.*return status 0"},
	{"ucmatose", "-b SERVER -c 3 -C 0", "-s SERVER -c 3 -C 0", "return status 0", ""},
	{"udaddy", "-b SERVER", "-s SERVER", "data transfers complete", "return status 0"},
	{"udaddy", "-b SERVER -c 4 -C 20 -S 1024", "-s SERVER -b SELF -c 4 -C 20 -S 1024 -t 32", "data transfers complete", "return status 0"},
	{"udaddy", "-b SERVER -S 10", "-s SERVER -S 10", "data transfers complete", "return status 0"},
}

// early matches the output of a client whose server does not listen yet.
var early = regexp.MustCompile(`REJECTED|UNREACHABLE|invalid service id|peer unreachable`)

// runBoth runs the program on both sides.
func (p cmProgram) runBoth(t testing.TB, g *lab.Guest, softHosts bool, f family, impair, preload string) error {
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	soft := lab.Binary(t, "softrnic")
	start := func(here bool, args string, server, self netip.Addr) *side {
		words := strings.Fields(p.name + " " + strings.NewReplacer("SERVER", server.String(), "SELF", self.String()).Replace(args))
		if here && preload != "" {
			return startHere(ctx, preloaded(preload, f.host, words...))
		}
		if here {
			return startHere(ctx, append([]string{soft, "--impair", impair}, words...))
		}
		return startGuest(ctx, g, words)
	}
	serverAddr, clientAddr := f.guest, f.host
	if softHosts {
		serverAddr, clientAddr = f.host, f.guest
	}
	server := start(softHosts, p.server, serverAddr, serverAddr)
	var client *side
	var err error
	if !softHosts {
		if err := g.WaitListenCM(ctx); err != nil {
			return fmt.Errorf("%w\n%v", err, server)
		}
	}
	for again := true; again; {
		client = start(!softHosts, p.client, serverAddr, clientAddr)
		err = <-client.ended
		again = softHosts && err != nil && early.Match(client.out.Bytes()) && len(server.ended) == 0 && ctx.Err() == nil
	}
	if err != nil {
		cancel() // the server may wait for another client
	}
	serverErr := <-server.ended
	switch {
	case err != nil:
		return fmt.Errorf("client: %w\n%v\n%v", err, client, server)
	case serverErr != nil:
		return fmt.Errorf("server: %w\n%v\n%v", serverErr, client, server)
	}
	for _, look := range []struct {
		side *side
		want string
	}{{client, p.proof}, {client, p.clientProof}, {server, p.proof}} {
		if !regexp.MustCompile(look.want).Match(look.side.out.Bytes()) {
			return fmt.Errorf("no %q in\n%v\n%v", look.want, look.side, server)
		}
	}
	return nil
}

// reliable reports whether the program ends when packets are lost.
func (p cmProgram) reliable() bool { return p.name != "udaddy" }

// TestRDMACM runs the programs of rdmacm-utils against softrnic's, in both roles. RDMA-CM derives
// the path MTU from the MTU of the cable.
func TestRDMACM(t *testing.T) {
	g := lab.Need(t)
	list := faults()
	n, picks := 0, 0
	for _, p := range cmPrograms {
		for _, softHosts := range []bool{true, false} {
			role := "client"
			if softHosts {
				role = "server"
			}
			for i, fault := range list {
				if i > 0 && (!p.reliable() || !isWide() && !picked(n, i, len(list)-1)) {
					continue
				}
				for fi, f := range families {
					for mi, mtu := range []int{lab.SmallMTU, lab.LargeMTU} {
						if !isSelected(picks, fi, mi, i == 0) {
							continue
						}
						name := fmt.Sprintf("%s %s, softrnic %s, %s, MTU %d, %s", p.name, p.client, role, f.name, mtu, fault.name)
						cell(t, programT, fault.name, []string{p.name, role}, name, func(t *testing.T) {
							require.NoError(t, g.SetMTU(context.Background(), mtu))
							t.Cleanup(func() { require.NoError(t, g.SetMTU(context.Background(), lab.LargeMTU)) })
							setFaults(t, g, fault.Faults)
							require.NoError(t, p.runBoth(t, g, softHosts, f, fault.impair, ""))
						})
					}
				}
				picks++
			}
			n++
		}
	}
}
