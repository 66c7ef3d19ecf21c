// Package sockets is what the tools of SDP share: the ends of streams, by SDP or
// by TCP, and the adapters that those by SDP need.
//
//	at, err := sockets.ParseAddr("sdp:192.0.2.1:7471") // or tcp:localhost:80
//	s := sockets.New(place, sdp.Options{})
//	defer s.Close(ctx)                             // what was written is still sent
//	l, err := s.Listen(ctx, at)                    // a net.Listener
//	conn, err := s.Dial(ctx, at)                   // a Conn, which has CloseWrite
//
// Adapters are opened when they are needed: a listener's at its address, one to
// dial from at an address that leads to the peer.
package sockets
