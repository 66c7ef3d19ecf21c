// The character device /dev/infiniband/rdma_cm for librdmacm, which remains that of the system: the
// preloaded library opens a socket here instead of the device and passes the commands that
// librdmacm writes to it. The interface is that of the kernel, <rdma/rdma_user_cm.h>, which is the
// same for all versions of rdma-core.
//
// The descriptor that the program polls is one end of a pair of sockets. The engine sends a byte to
// it for each event, so it is readable while there are events, and RDMA_USER_CM_CMD_GET_EVENT takes
// one byte with each event: it blocks, fails with EAGAIN or is interrupted as a read of the
// descriptor.
#include "engine.h"
#include "rdmacm.h"
#include "_cgo_export.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

// softrnic_cm_open opens an event channel with the flags of open(2) and returns its descriptor, or
// -1 with errno.
int API(cm_open)(int flags)
{
	if (softrnic_forked) {
		errno = EIO;
		return -1;
	}
	int fd = go_cm_open(flags);
	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

// get_event waits for an event of a channel and stores it.
static int get_event(int fd, uint64_t channel, const struct rdma_ucm_cmd_hdr *header,
		     const struct rdma_ucm_get_event *command)
{
	for (bool again = false;; again = true) {
		char token;
		ssize_t n = recv(fd, &token, sizeof token, 0);
		if (n < 0 && again && (errno == EBADF || errno == ENOTSOCK))
			poll(NULL, 0, -1); // closed by another thread: the kernel waits for a signal then
		if (n < 0)
			return errno;
		if (n == 0)
			return EIO;
		int error = go_cm_event(channel, cm_pointer(command->response), header->out);
		if (error != EAGAIN)
			return error;
		// The event was dropped after its token was read: its id is destroyed or has migrated.
	}
}

// softrnic_cm_write executes a command as write(2) to the device. It returns the length, -1 with
// errno, or -2 if the descriptor is not an event channel (any more).
ssize_t API(cm_write)(int fd, const void *buffer, size_t count)
{
	struct rdma_ucm_cmd_hdr header;
	uint64_t channel;
	int error;
	if (softrnic_forked)
		error = EIO;
	else if (!(channel = go_cm_find_channel(fd)))
		return -2;
	else if (count < sizeof header)
		error = EINVAL;
	else {
		memcpy(&header, buffer, sizeof header);
		const char *command = (const char *)buffer + sizeof header;
		struct rdma_ucm_get_event get;
		if (header.in + sizeof header > count)
			error = EINVAL;
		else if (header.cmd != RDMA_USER_CM_CMD_GET_EVENT)
			error = go_cm_command(channel, header.cmd, (void *)command, header.in, header.out);
		else if (header.in < sizeof get || header.out < offsetof(struct rdma_ucm_event_resp, reserved))
			error = ENOSPC;
		else {
			memcpy(&get, command, sizeof get);
			error = get_event(fd, channel, &header, &get);
		}
	}
	if (error) {
		errno = error;
		return -1;
	}
	return count;
}
