package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
	"github.com/softrnic/softrnic/internal/hostaddr"
)

// envAddr is rnic.EnvAddr: the addresses from which an adapter chooses.
const envAddr = "SOFTRNIC_ADDR"

// UDP ports of the ranks of a host, which share its address: RoCE's port 4791 and those above.
const (
	firstPort = 4791
	lastPort  = 5790
)

// maxHostAddrs is the maximum number of addresses in a HostInfo.
const maxHostAddrs = 16

// hostInfo returns the addresses of this host.
func hostInfo() (a frame.HostInfo) {
	if here := sshAddress(); here.IsValid() {
		a.Here = here.String()
	}
	own, _ := hostaddr.Own() // without any, ranks here still reach one another
	for _, ip := range own {
		if !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && len(a.Addrs) < maxHostAddrs {
			a.Addrs = append(a.Addrs, ip.String())
		}
	}
	return a
}

// sshAddress returns the address of this host that ssh connected to, the third word of
// SSH_CONNECTION, or the zero Addr without ssh.
func sshAddress() netip.Addr {
	words := strings.Fields(os.Getenv("SSH_CONNECTION"))
	if len(words) != 4 {
		return netip.Addr{}
	}
	ip, err := netip.ParseAddr(words[2])
	if err != nil {
		return netip.Addr{}
	}
	return ip.Unmap()
}

// lookupTimeout bounds the resolution of a peer's name.
const lookupTimeout = 2 * time.Second

// findAddress sets the address of the ranks on this host to one that reaches the other hosts of
// the job: the address by which the user names this host or to which ssh connected, or else the
// source address of the route to the first peer. It stays empty if all ranks are on this host.
func (a *agent) findAddress() {
	if len(a.spec.Peers) == 0 {
		return
	}
	fits := func(ip netip.Addr) bool {
		return ip.IsValid() && !ip.IsLoopback() && (a.spec.Family == 0 || ip.Is4() == (a.spec.Family == 4))
	}
	here := sshAddress()
	if named, err := netip.ParseAddr(a.spec.Here); err == nil {
		here = named
	}
	if fits(here) {
		a.setAddress(here)
		return
	}
	near := 0 // peers on this host
	for _, peer := range a.spec.Peers {
		for _, ip := range lookupAddrs(peer) {
			if ip.IsLoopback() || hostaddr.IsOwn(ip) {
				near++
			} else if from, err := hostaddr.Toward(ip); err == nil && fits(ip) && fits(from) {
				a.setAddress(from)
				return
			}
		}
	}
	switch {
	case near == 0:
		a.sendNote(fmt.Sprintf("no route to the other hosts (%s): adapters open on the loopback interface; --addr or %s names an address",
			strings.Join(a.spec.Peers, ", "), envAddr))
	case here.IsLoopback():
		a.setAddress(here)
	}
}

// setAddress sets the address of the ranks, with a range of ports.
func (a *agent) setAddress(ip netip.Addr) {
	a.addr = withPorts(hostaddr.Entry{Prefix: netip.PrefixFrom(ip.WithZone(""), ip.BitLen()), Zone: ip.Zone()}).String()
}

// withPorts adds the range of ports to an address without one.
func withPorts(e hostaddr.Entry) hostaddr.Entry {
	if !e.Ports && e.Prefix.IsSingleIP() {
		e.Ports, e.First, e.Last = true, firstPort, lastPort
	}
	return e
}

// lookupAddrs returns the addresses of a peer, given as an address or a name.
func lookupAddrs(peer string) []netip.Addr {
	if ip, err := netip.ParseAddr(peer); err == nil {
		return []netip.Addr{ip.Unmap()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	list, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", peer) // a name of ssh's own has none
	for i, ip := range list {
		list[i] = ip.Unmap()
	}
	return list
}

// addressFor returns the value of SOFTRNIC_ADDR for a rank with this environment: the user's
// addresses, with ports if ranks share one, or else the agent's address.
func (a *agent) addressFor(environ []string) string {
	given := ""
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, envAddr+"="); ok {
			given = value
		}
	}
	list, err := hostaddr.Parse(given)
	switch {
	case given == "":
		return a.addr
	case err != nil || a.spec.Size == 1:
		return given // the rank reports the error
	}
	for i, e := range list {
		list[i] = withPorts(e)
	}
	return hostaddr.Join(list)
}
