package main

/*
#include "rdmacm.h"
*/
import "C"

import (
	"math"
	"runtime/debug"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// A cmCommand is a command of librdmacm to a channel.
type cmCommand struct {
	channel *cmChannel
	in      unsafe.Pointer
	size    int // bytes at in
	out     int // bytes of room for the response
}

// cmCommands are the handlers of commands, which return an errno. As in the kernel, others fail with
// ENOSYS. The commands with addresses of AF_IB are among these: RDMA_USER_CM_CMD_BIND fails, so
// librdmacm uses those for IP addresses.
var cmCommands = map[C.uint]func(cmCommand) C.int{
	C.RDMA_USER_CM_CMD_CREATE_ID:     cmCommand.createID,
	C.RDMA_USER_CM_CMD_DESTROY_ID:    cmCommand.destroyID,
	C.RDMA_USER_CM_CMD_BIND_IP:       cmCommand.bindIP,
	C.RDMA_USER_CM_CMD_RESOLVE_IP:    cmCommand.resolveIP,
	C.RDMA_USER_CM_CMD_RESOLVE_ROUTE: cmCommand.resolveRoute,
	C.RDMA_USER_CM_CMD_QUERY_ROUTE:   cmCommand.queryRoute,
	C.RDMA_USER_CM_CMD_CONNECT:       cmCommand.connect,
	C.RDMA_USER_CM_CMD_LISTEN:        cmCommand.listen,
	C.RDMA_USER_CM_CMD_ACCEPT:        cmCommand.accept,
	C.RDMA_USER_CM_CMD_REJECT:        cmCommand.reject,
	C.RDMA_USER_CM_CMD_DISCONNECT:    cmCommand.disconnect,
	C.RDMA_USER_CM_CMD_INIT_QP_ATTR:  cmCommand.initQPAttr,
	C.RDMA_USER_CM_CMD_SET_OPTION:    cmCommand.setOption,
	C.RDMA_USER_CM_CMD_NOTIFY:        cmCommand.notify,
	C.RDMA_USER_CM_CMD_JOIN_IP_MCAST: cmCommand.joinMulticast,
	C.RDMA_USER_CM_CMD_LEAVE_MCAST:   cmCommand.leaveMulticast,
	C.RDMA_USER_CM_CMD_MIGRATE_ID:    cmCommand.migrateID,
}

// go_cm_command executes a command and returns an errno.
//
//export go_cm_command
func go_cm_command(channel C.uint64_t, command C.uint, in unsafe.Pointer, size, out C.uint) (errno C.int) {
	defer endCall(&errno, debug.SetPanicOnFault(true))
	cmMu.Lock()
	defer cmMu.Unlock()
	ch := findChannel(channel)
	if ch == nil {
		return C.EBADF
	}
	handler := cmCommands[command]
	if handler == nil {
		return C.ENOSYS
	}
	return handler(cmCommand{channel: ch, in: in, size: int(size), out: int(out)})
}

// readCommand returns the structure of a command, of which the program may have an older, shorter
// version without the last fields.
func readCommand[T any](c cmCommand) *T {
	t := new(T)
	n := int(unsafe.Sizeof(*t))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(t)), n), unsafe.Slice((*byte)(c.in), min(c.size, n)))
	return t
}

// respond stores the response of a command at an address of the program.
func respond[T any](c cmCommand, address C.__u64, response *T) C.int {
	n := min(int(unsafe.Sizeof(*response)), c.out)
	if !isProgramRange(uintptr(address), uint64(n)) {
		return C.EFAULT
	}
	copy(unsafe.Slice((*byte)(C.cm_pointer(C.uint64_t(address))), n), unsafe.Slice((*byte)(unsafe.Pointer(response)), n))
	return 0
}

// find returns the id of a command: ENOENT if there is none, EINVAL if it is of another channel.
func (c cmCommand) find(number C.__u32) (*cmID, C.int) {
	id := cmIDs[uint32(number)]
	switch {
	case id == nil:
		return nil, C.ENOENT
	case id.channel != c.channel:
		return nil, C.EINVAL
	}
	return id, 0
}

// findBound is find for commands of ids that have a device.
func (c cmCommand) findBound(number C.__u32) (*cmID, C.int) {
	id, errno := c.find(number)
	if errno == 0 && id.device == nil {
		return nil, C.EINVAL
	}
	return id, errno
}

func (c cmCommand) createID() C.int {
	r := readCommand[C.struct_rdma_ucm_create_id](c)
	if c.out < int(unsafe.Sizeof(C.struct_rdma_ucm_create_id_resp{})) {
		return C.ENOSPC
	}
	var qpType verbs.QPType
	switch r.ps {
	case C.RDMA_PS_TCP:
		qpType = verbs.RC
	case C.RDMA_PS_UDP, C.RDMA_PS_IPOIB:
		qpType = verbs.UD
	case C.RDMA_PS_IB:
		qpType = verbs.QPType(r.qp_type)
	default:
		return C.EINVAL
	}
	id := newCMID(c.channel, uint64(r.uid), mad.PortSpace(r.ps), qpType)
	if id == nil {
		return C.ENOMEM
	}
	return respond(c, r.response, &C.struct_rdma_ucm_create_id_resp{id: C.__u32(id.number)})
}

func (c cmCommand) destroyID() C.int {
	r := readCommand[C.struct_rdma_ucm_destroy_id](c)
	id, errno := c.find(r.id)
	if errno != 0 {
		return errno
	}
	return respond(c, r.response, &C.struct_rdma_ucm_destroy_id_resp{events_reported: C.__u32(id.destroy())})
}

func (c cmCommand) bindIP() C.int {
	r := readCommand[C.struct_rdma_ucm_bind_ip](c)
	addr, ok := parseSockaddr(&r.addr)
	if !ok {
		return C.EINVAL
	}
	id, errno := c.find(r.id)
	if errno != 0 {
		return errno
	}
	if errno = id.bindAddr(addr); errno == 0 {
		id.holdRequests()
	}
	return errno
}

func (c cmCommand) resolveIP() C.int {
	r := readCommand[C.struct_rdma_ucm_resolve_ip](c)
	src, ok := parseSockaddr(&r.src_addr)
	dst, ok2 := parseSockaddr(&r.dst_addr)
	if !ok && r.src_addr.sin6_family != 0 || !ok2 || ok && src.Addr().Is4() != dst.Addr().Is4() {
		return C.EINVAL
	}
	id, errno := c.find(r.id)
	if errno != 0 {
		return errno
	}
	command, event := id.resolveAddr(src, dst)
	switch {
	case command != 0:
		return command
	case event != 0:
		id.queueEvent(C.CM_ADDR_ERROR, -int(event), nil)
	default:
		id.queueEvent(C.CM_ADDR_RESOLVED, 0, nil)
	}
	return 0
}

// resolveRoute needs no query: the route of RoCE is that of IP.
func (c cmCommand) resolveRoute() C.int {
	id, errno := c.findBound(readCommand[C.struct_rdma_ucm_resolve_route](c).id)
	switch {
	case errno != 0:
		return errno
	case id.state != cmAddrResolved:
		return C.EINVAL
	}
	id.state = cmRouteResolved
	id.queueEvent(C.CM_ROUTE_RESOLVED, 0, nil)
	return 0
}

// maxBacklog bounds the backlog of a listener, as the kernel's parameter rdma_ucm.max_backlog.
const maxBacklog = 1024

func (c cmCommand) listen() C.int {
	r := readCommand[C.struct_rdma_ucm_listen](c)
	id, errno := c.find(r.id)
	if errno != 0 {
		return errno
	}
	id.backlog = int(r.backlog)
	if id.backlog <= 0 || id.backlog > maxBacklog {
		id.backlog = maxBacklog
	}
	return id.listen()
}

// Levels and names of options, see rdma_set_option(3).
func (c cmCommand) setOption() C.int {
	r := readCommand[C.struct_rdma_ucm_set_option](c)
	id, errno := c.find(r.id)
	if errno != 0 {
		return errno
	}
	if r.optlen > math.MaxUint16 {
		return C.EINVAL
	}
	if !isProgramRange(uintptr(r.optval), uint64(r.optlen)) {
		return C.EFAULT
	}
	value := unsafe.Slice((*byte)(C.cm_pointer(C.uint64_t(r.optval))), r.optlen)
	length := map[C.__u32]int{C.RDMA_OPTION_ID_TOS: 1, C.RDMA_OPTION_ID_REUSEADDR: 4, C.RDMA_OPTION_ID_AFONLY: 4, C.RDMA_OPTION_ID_ACK_TIMEOUT: 1}
	switch want, known := length[r.optname]; {
	case r.level != C.RDMA_OPTION_ID, !known:
		return C.ENOSYS
	case len(value) != want:
		return C.EINVAL
	}
	switch r.optname {
	case C.RDMA_OPTION_ID_TOS:
		id.trafficClass = value[0]
	case C.RDMA_OPTION_ID_REUSEADDR:
		if id.state != cmIdle && id.state != cmBound {
			return C.EINVAL
		}
		id.reuseAddr = *(*C.int)(unsafe.Pointer(&value[0])) != 0
	case C.RDMA_OPTION_ID_AFONLY:
		if id.state != cmIdle && id.state != cmBound {
			return C.EINVAL
		}
	case C.RDMA_OPTION_ID_ACK_TIMEOUT:
		if value[0] > 31 || id.qpType != verbs.RC {
			return C.EINVAL
		}
		id.ackTimeout = value[0]
	}
	return 0
}

// migrateID moves an id with its events to the channel of the command.
func (c cmCommand) migrateID() C.int {
	r := readCommand[C.struct_rdma_ucm_migrate_id](c)
	from := channelOf(int(int32(r.fd)))
	if from == nil {
		return C.EINVAL
	}
	id, errno := (cmCommand{channel: from}).find(r.id)
	if errno != 0 {
		return errno
	}
	if from != c.channel {
		id.migrate(c.channel)
	}
	return respond(c, r.response, &C.struct_rdma_ucm_migrate_resp{events_reported: C.__u32(id.reported)})
}

// migrate moves an id to another channel, with the requests among its events.
func (id *cmID) migrate(to *cmChannel) {
	from := id.channel
	delete(from.ids, id.number)
	to.ids[id.number] = id
	id.channel = to
	var rest, moved []*cmEvent
	for _, e := range from.events {
		if e.id != id {
			rest = append(rest, e)
			continue
		}
		moved = append(moved, e)
		if e.request != nil {
			e.request.migrate(to)
		}
	}
	from.events = rest
	from.dropTokens()
	for _, e := range moved {
		to.queue(e)
	}
}
