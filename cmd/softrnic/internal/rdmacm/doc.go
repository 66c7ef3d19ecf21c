// Package rdmacm has the parts shared by the tools that connect by RDMA-CM: how they
// open an adapter with a connection manager.
//
// A server listens at one address, or at every address of the machine, with an
// adapter for each:
//
//	s, err := rdmacm.Listen(source, bind, 7174, cm.ListenOptions{}, skipped)
//	r, err := s.Accept(ctx) // r.Endpoint is the adapter that received r.Request
//
// A client needs an adapter with a route to the server:
//
//	addr, err := rdmacm.Resolve(ctx, "localhost", "")
//	e, err := rdmacm.OpenClient(source, addr, bind)
//	conn, err := e.Manager.Dial(ctx, netip.AddrPortFrom(addr, 7174), ...)
//
// RDMA-CM cannot carry the UDP port of a server's adapter: it is 4791.
package rdmacm
