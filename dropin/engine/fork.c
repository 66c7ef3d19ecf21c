// Sockets of the engine in a child by fork. The child has no device, but it would hold the address, the names and the
// connections of its parent's devices after the parent has ended, so they are closed there. The Go runtime does not run
// in the child: its descriptors are found by the addresses that they are bound to.
#define _GNU_SOURCE
#include "engine.h"
#include "fork.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAX_ADDRESSES = 16 };

static struct {
	struct in6_addr ip; // IPv4-mapped for IPv4
	in_port_t port;     // big-endian
} addresses[MAX_ADDRESSES];
static int address_count;

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

// has_name reports whether a Unix socket address is an abstract name of softrnic.
static bool has_name(const union address *a, socklen_t length)
{
	static const char prefix[] = "\0softrnic"; // without its last zero
	return a->sa.sa_family == AF_UNIX && length >= offsetof(struct sockaddr_un, sun_path) + sizeof prefix - 1 &&
	       !memcmp(a->un.sun_path, prefix, sizeof prefix - 1);
}

// has_address reports whether an Internet address is that of a device, or of a multicast group at its port.
static bool has_address(const union address *a)
{
	struct in6_addr ip = IN6ADDR_ANY_INIT;
	in_port_t port;
	bool multicast;
	if (a->sa.sa_family == AF_INET) {
		ip.s6_addr[10] = ip.s6_addr[11] = 0xff;
		memcpy(ip.s6_addr + 12, &a->v4.sin_addr, 4);
		port = a->v4.sin_port;
		multicast = IN_MULTICAST(ntohl(a->v4.sin_addr.s_addr));
	} else if (a->sa.sa_family == AF_INET6) {
		ip = a->v6.sin6_addr;
		port = a->v6.sin6_port;
		multicast = IN6_IS_ADDR_MULTICAST(&ip);
	} else {
		return false;
	}
	for (int i = 0; i < address_count; i++)
		if (port == addresses[i].port && (multicast || !memcmp(&ip, &addresses[i].ip, sizeof ip)))
			return true;
	return false;
}

// is_engine_socket reports whether a descriptor is a socket that the engine has opened.
static bool is_engine_socket(int fd)
{
	union address a;
	socklen_t length = sizeof a;
	int type;
	if (getsockname(fd, &a.sa, &length))
		return false; // no socket
	if (has_name(&a, length))
		return true;
	if (a.sa.sa_family == AF_UNIX) {
		length = sizeof a;
		return !getpeername(fd, &a.sa, &length) && has_name(&a, length);
	}
	length = sizeof type;
	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) && type == SOCK_DGRAM && has_address(&a);
}

// close_in_child closes the sockets. It only makes system calls, since the parent may have had several threads.
static void close_in_child(void)
{
	if (!address_count)
		return;
	int dir = syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	_Alignas(struct dirent64) char entries[2048];
	for (long n; (n = syscall(SYS_getdents64, dir, entries, sizeof entries)) > 0;) {
		for (long at = 0; at < n;) {
			const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
			at += entry->d_reclen;
			int fd = entry->d_name[0] == '.' ? -1 : atoi(entry->d_name);
			if (fd >= 0 && fd != dir && is_engine_socket(fd))
				syscall(SYS_close, fd);
		}
	}
	syscall(SYS_close, dir);
}

void note_device_address(const uint8_t ip[16], uint16_t port)
{
	if (address_count == MAX_ADDRESSES)
		return;
	if (!address_count)
		pthread_atfork(NULL, NULL, close_in_child);
	memcpy(&addresses[address_count].ip, ip, sizeof addresses->ip);
	addresses[address_count].port = htons(port);
	address_count++;
}
