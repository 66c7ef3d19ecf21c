// Package sockets dials and accepts streams over SDP or TCP for the SDP tools, and opens
// the adapters that SDP needs.
//
//	at, err := sockets.ParseAddr("sdp:192.0.2.1:7471") // or tcp:localhost:80
//	s := sockets.New(source, sdp.Options{})
//	defer s.Close(ctx)                                 // delivers written data
//	l, err := s.Listen(ctx, at)                        // a net.Listener
//	conn, err := s.Dial(ctx, at)                       // a Conn, which has CloseWrite
//
// Adapters are opened on demand: a listener's at its address, one for dialing at the
// source address of the route to the peer.
package sockets
