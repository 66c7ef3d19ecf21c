package cmtool

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
)

// Run runs the server or the client, and writes its status. Nil writers and functions are
// replaced.
func (o *Options) Run(ctx context.Context, server, client func(context.Context) error) error {
	o.complete()
	part := server
	if o.Server != "" {
		part = client
	}
	err := part(ctx)
	status := 0
	if err != nil {
		status = 1
	}
	o.Say("test complete")
	o.Say("return status %d", status)
	return err
}

// Say writes a line.
func (o *Options) Say(format string, args ...any) { fmt.Fprintf(o.Out, format+"\n", args...) }

// Skipped reports an address without an adapter.
func (o *Options) Skipped(err error) { fmt.Fprintln(o.Log, err) }

// Own returns the address to bind to, or the zero Addr.
func (o *Options) Own(ctx context.Context) (netip.Addr, error) {
	bind, err := rdmacm.ResolveBind(ctx, o.Bind, o.Format)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("-b: %w", err)
	}
	return bind, nil
}

// Towards opens a client's endpoint and returns the server's address. The caller must close the
// endpoint.
func (o *Options) Towards(ctx context.Context) (*rdmacm.Endpoint, netip.AddrPort, error) {
	addr, err := rdmacm.Resolve(ctx, o.Server, o.Format)
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("-s: %w", err)
	}
	bind, err := o.Own(ctx)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	at, err := rdmacm.OpenClient(o.DeviceSource, addr, bind)
	return at, netip.AddrPortFrom(addr, uint16(o.Port)), err
}
