// Package rdmacm is what the tools that connect by RDMA-CM share: how they come
// to an adapter with a manager of connections.
//
// A server waits at one address, or at every one of the machine, each with an
// adapter of its own:
//
//	s, err := rdmacm.Serve(place, bind, log)
//	err = s.Listen(7174, cm.ListenOptions{})
//	r, end, err := s.Accept(ctx) // end is the adapter that the request has come to
//
// A client needs one that leads to the server:
//
//	addr, err := rdmacm.Resolve(ctx, "localhost")
//	end, err := rdmacm.OpenClient(place, addr, bind)
//	conn, err := end.Manager.Dial(ctx, netip.AddrPortFrom(addr, 7174), ...)
//
// RDMA-CM has no word for the UDP port of a server's adapter: it is 4791.
package rdmacm
