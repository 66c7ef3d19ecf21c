// Package control lets the lab run commands in its guest: a server there, a
// client here, one TCP connection for each command.
//
//	go control.Serve(listener)             // in the guest
//	c := control.Client{Addr: "198.51.100.2:22"}
//	p, err := c.Start(ctx, control.Command{Args: []string{"ip", "link"}}, os.Stdout, os.Stderr)
//	err = p.Wait()                         // nil, *ExitError, or what became of the connection
//
// A connection that closes takes its command, and what that has started, with
// it. There is no authentication: whoever reaches the server runs commands
// there, so it belongs into a guest on a network of its own.
package control
