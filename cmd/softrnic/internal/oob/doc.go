// Package oob is the TCP connection over which two test programs tell each
// other their queue pairs, before there is anything to talk over
// ("out of band").
//
// A client dials. A server listens and takes the first client that says a
// proper hello; whoever stays silent or talks nonsense meanwhile holds up
// nobody and is dropped:
//
//	l, err := oob.Listen(netip.Addr{}, 18515)
//	defer l.Close()
//	accept := func(ctx context.Context) (*oob.Conn, error) { return l.Accept(ctx, 10*time.Second) }
//	conn, hello, err := oob.AcceptFirst(ctx, accept, readHello, func(err error) { log.Print(err) })
//	defer conn.Close()
//	err = conn.Write(answer, "answer")
//
// Every read and write ends within the connection's patience, or with the
// context; what was wrong is a [*PeerError] around [ErrSilent], [ErrGone] or
// [ErrNonsense].
//
// The originals read each message with one read(2), so a message leaves with
// one Write. Ours are read to their length in as many pieces as they come.
package oob
