/* The event channels of librdmacm. It opens /dev/infiniband/rdma_cm, checks that this is a character device, and writes
 * commands to it (<rdma/rdma_user_cm.h>). The engine opens a socket instead, whose inode is noted here, and executes
 * the commands. The program's librdmacm with its rsockets is that of the system. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "channel.h"
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEVICE "/dev/infiniband/rdma_cm"
#define NETLINK_RDMA 20

enum { max_channel = 1 << 16 };

static ino_t _Atomic inodes[max_channel]; /* of the sockets that the engine opened, by descriptor, or 0 */
static int _Atomic any;                   /* a channel was opened once */

static ssize_t (*_Atomic engine_write)(int, const void *, size_t);

/* socket_inode returns the inode of a socket, or 0. It has no effect on errno. */
static ino_t socket_inode(int fd)
{
	struct stat s;
	int saved = errno;
	long result = syscall(SYS_fstat, fd, &s);
	errno = saved;
	return result == 0 && S_ISSOCK(s.st_mode) ? s.st_ino : 0;
}

/* is_channel reports whether a descriptor is that of a channel. It may have been closed or replaced since, also in a
 * child of fork. */
static int is_channel(int fd)
{
	if (!atomic_load_explicit(&any, memory_order_relaxed) || fd < 0 || fd >= max_channel)
		return 0;
	ino_t inode = atomic_load_explicit(&inodes[fd], memory_order_acquire);
	if (inode == 0)
		return 0;
	if (socket_inode(fd) == inode)
		return 1;
	atomic_compare_exchange_strong(&inodes[fd], &inode, 0);
	return 0;
}

/* engine_function returns a function of the engine, or NULL. */
static void *engine_function(const char *name)
{
	void *engine = softrnic_engine();
	return engine ? dlsym(engine, name) : NULL;
}

int softrnic_open_channel(const char *path, int flags)
{
	if (!path || path[0] != '/' || strcmp(path, DEVICE) != 0)
		return NO_CHANNEL;
	int saved = errno;
	int (*open_channel)(int) = (int (*)(int))engine_function("softrnic_cm_open");
	ssize_t (*write_channel)(int, const void *, size_t) =
		(ssize_t(*)(int, const void *, size_t))engine_function("softrnic_cm_write");
	errno = saved;
	if (!open_channel || !write_channel)
		return NO_CHANNEL;
	int fd = open_channel(flags);
	if (fd >= max_channel) {
		close(fd);
		errno = EMFILE;
		return -1;
	}
	if (fd >= 0) {
		atomic_store(&engine_write, write_channel);
		atomic_store(&inodes[fd], socket_inode(fd));
		atomic_store(&any, 1);
	}
	return fd;
}

typedef ssize_t (*write_function)(int, const void *, size_t);

static void *next_write, *next_socket; /* written with equal values by all threads */

static void *find_next(void **slot, const char *name)
{
	void *function = __atomic_load_n(slot, __ATOMIC_RELAXED);
	if (!function) {
		function = dlsym(RTLD_NEXT, name);
		__atomic_store_n(slot, function, __ATOMIC_RELAXED);
	}
	return function;
}

__attribute__((constructor)) static void find_all(void)
{
	find_next(&next_write, "write");
	find_next(&next_socket, "socket");
}

PUBLIC ssize_t write(int fd, const void *buffer, size_t count)
{
	if (is_channel(fd)) {
		ssize_t n = atomic_load(&engine_write)(fd, buffer, count);
		if (n != -2) /* closed by another thread meanwhile */
			return n;
	}
	write_function next = (write_function)find_next(&next_write, "write");
	return next ? next(fd, buffer, count) : syscall(SYS_write, fd, buffer, count);
}

/* Without netlink, librdmacm takes the device by its path, also where the kernel has RDMA devices of its own. */
PUBLIC int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && !softrnic_is_off()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	int (*next)(int, int, int) = (int (*)(int, int, int))find_next(&next_socket, "socket");
	return next ? next(domain, type, protocol) : (int)syscall(SYS_socket, domain, type, protocol);
}

/* The functions that tell a character device from a socket. */
#define FSTAT_FUNCTIONS(F)                                                                                             \
	F(fstat, (int fd, struct stat *s), (fd, s), dlsym(RTLD_NEXT, "fstat"))                                         \
	F(fstat64, (int fd, struct stat64 *s), (fd, s), dlsym(RTLD_NEXT, "fstat64"))                                   \
	F(__fxstat, (int version, int fd, struct stat *s), (version, fd, s), dlvsym(RTLD_NEXT, "__fxstat", FIRST))     \
	F(__fxstat64, (int version, int fd, struct stat64 *s), (version, fd, s), dlvsym(RTLD_NEXT, "__fxstat64", FIRST))

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#endif

#define DECLARE_FSTAT(name, parameters, arguments, found) int name parameters;
FSTAT_FUNCTIONS(DECLARE_FSTAT)

#define DEFINE_FSTAT(name, parameters, arguments, found)                                                               \
	PUBLIC int name parameters                                                                                     \
	{                                                                                                              \
		static void *next;                                                                                     \
		__typeof__(&name) function = (__typeof__(&name))__atomic_load_n(&next, __ATOMIC_RELAXED);              \
		if (!function) {                                                                                       \
			function = (__typeof__(&name))found;                                                           \
			__atomic_store_n(&next, (void *)function, __ATOMIC_RELAXED);                                   \
		}                                                                                                      \
		if (!function) {                                                                                       \
			errno = ENOSYS;                                                                                \
			return -1;                                                                                     \
		}                                                                                                      \
		int result = function arguments;                                                                       \
		if (result == 0 && S_ISSOCK(s->st_mode) && is_channel(fd))                                              \
			s->st_mode = S_IFCHR | (s->st_mode & ~S_IFMT);                                                 \
		return result;                                                                                         \
	}
FSTAT_FUNCTIONS(DEFINE_FSTAT)
