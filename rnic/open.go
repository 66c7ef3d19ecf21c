package rnic

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"syscall"

	"github.com/softrnic/softrnic/internal/link"
)

// open opens the sockets, one for each shard.
func (o *Options) open() ([]link.Conn, error) {
	if o.Shards < 0 || o.Shards > maxShards {
		return nil, fmt.Errorf("options: %d shards, want 1 to %d (0 means 1)", o.Shards, maxShards)
	}
	if o.Conn != nil {
		return []link.Conn{o.Conn}, nil
	}
	lo := link.Options{
		NoGSO: o.NoGSO, NoGRO: o.NoGRO, NoMMsg: o.NoMMsg, Portable: o.Portable,
		RecvBuffer: o.RecvBuffer, SendBuffer: o.SendBuffer,
	}
	var err error
	for _, a := range o.candidates() {
		lo.Addr = a
		lo.NoTOS = a.Addr().IsLoopback() // where nothing marks packets on their way
		var conns []link.Conn
		if conns, err = link.OpenGroup(lo, max(1, o.Shards)); err == nil {
			return conns, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, err
}

// maxShards bounds Options.Shards.
const maxShards = 256

// loopbackTries is how many addresses of 127.0.0.0/8 are tried for a device
// that was given none.
const loopbackTries = 64

// candidates lists the addresses to try, in order.
func (o *Options) candidates() []netip.AddrPort {
	if o.Addr.Addr().IsValid() {
		a := o.Addr
		if a.Port() == 0 && !o.AnyPort {
			a = netip.AddrPortFrom(a.Addr(), roceUDPPort)
		}
		return []netip.AddrPort{a}
	}
	localhost := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	list := []netip.AddrPort{netip.AddrPortFrom(localhost, roceUDPPort)}
	if runtime.GOOS == "linux" { // where every address of 127.0.0.0/8 is the machine's own
		for range loopbackTries {
			r := secureRandom()
			a := netip.AddrFrom4([4]byte{127, byte(r>>16) | 1, byte(r >> 8), byte(r)%254 + 1})
			list = append(list, netip.AddrPortFrom(a, roceUDPPort))
		}
	}
	return append(list, netip.AddrPortFrom(localhost, 0))
}
