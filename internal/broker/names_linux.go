package broker

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// brokerName stands for the name of the broker where others are those of slots.
const brokerName = -1

// nameOf returns the abstract Unix address of a slot or of the broker.
func (g *group) nameOf(slot int) *net.UnixAddr {
	last := "broker"
	if slot != brokerName {
		last = strconv.Itoa(slot)
	}
	return &net.UnixAddr{Net: "unixpacket", Name: fmt.Sprintf("@softrnic/%v/%s", g.addr, last)}
}

// listenName takes a name. The error is EADDRINUSE if it is taken.
func (g *group) listenName(slot int) (*net.UnixListener, error) {
	return net.ListenUnix("unixpacket", g.nameOf(slot))
}

// dialName connects to the holder of a name. It does not block: an error other than
// ECONNREFUSED means that the name is taken.
func (g *group) dialName(slot int) (*net.UnixConn, error) {
	return net.DialUnix("unixpacket", nil, g.nameOf(slot))
}

// checkPeer returns the process at the other end, and ErrForeign if it is of another user.
func checkPeer(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	switch {
	case controlErr != nil:
		return 0, controlErr
	case err != nil:
		return 0, os.NewSyscallError("getsockopt SO_PEERCRED", err)
	case int(cred.Uid) != os.Geteuid():
		return int(cred.Pid), &foreignError{owner: int(cred.Uid)}
	}
	return int(cred.Pid), nil
}

// hasEnded reports whether there is no process of this number. The number of a process in
// another PID namespace, which may run, is 0.
func hasEnded(pid int) bool { return pid > 0 && unix.Kill(pid, 0) == unix.ESRCH }

// A foreignError is an ErrForeign with the users.
type foreignError struct{ owner int }

// Error implements error.
func (e *foreignError) Error() string {
	return fmt.Sprintf("%v: it is of user %d, this process is of user %d", ErrForeign, e.owner, os.Geteuid())
}

// Is reports whether target is ErrForeign or os.ErrPermission.
func (e *foreignError) Is(target error) bool {
	return target == ErrForeign || target == os.ErrPermission
}
