// Package control lets the lab run commands in its guest: a server there, a
// client here, one TCP connection for each command.
//
//	go control.Serve(listener)             // in the guest
//	c := control.Client{Addr: "198.51.100.2:22"}
//	p, err := c.Start(ctx, control.Command{Args: []string{"ip", "link"}}, os.Stdout, os.Stderr)
//	err = p.Wait()                         // nil, *ExitError, or a connection error
//
// When a connection closes, its command and the command's descendants are killed. The server has
// no authentication: every client can run commands, so it must run in a guest on a private
// network.
package control
